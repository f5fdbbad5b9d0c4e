import numpy as np
import warp as wp
from hypothesis import given, settings
from hypothesis import strategies as st

from nimbus.datagen.geometry.transforms import look_at, quat_to_matrix
from nimbus.datagen.render.raytracer import culling
from nimbus.datagen.render.raytracer.kernel_data import GRID, TILE, Boxes, Steps, Views

seeds = st.integers(0, 2**32 - 1)


def turned_boxes(rng, count):
    """Boxes around the origin in frames of their own: poses, halves of their sides, and what the device takes."""
    wxyz = rng.normal(size=(count, 4))
    rotations = quat_to_matrix(wxyz / np.linalg.norm(wxyz, axis=1, keepdims=True))
    half, place = rng.uniform(0.01, 0.5, (count, 3)), rng.uniform(-1, 1, (count, 3))
    boxes = Boxes()
    boxes.count, boxes.eight = count, 8
    boxes.mesh = wp.array(np.arange(count), dtype=wp.int32)
    boxes.lower, boxes.upper = wp.array(-half, dtype=wp.vec3), wp.array(half, dtype=wp.vec3)
    return rotations, place, half, boxes


def inside(rng, rotations, place, half, count=50):
    """Random points in each box (G, count, 3)."""
    local = rng.uniform(-1, 1, (len(half), count, 3)) * half[:, None]
    return local @ np.swapaxes(rotations, 1, 2) + place[:, None]


def view(eye, rotation, rotations, place, *, width=70, height=50, focal=45.0):
    shown = Views()
    shown.width, shown.height, shown.focal = width, height, focal
    local = np.swapaxes(rotations, 1, 2)
    shown.origins = wp.array((local @ (eye - place)[..., None])[..., 0], dtype=wp.vec3)
    shown.mesh_R_camera = wp.array(local @ rotation, dtype=wp.mat33)
    return shown


@settings(max_examples=60)
@given(seeds)
def test_every_point_of_a_box_that_is_in_the_image_lies_in_a_tile_of_its_set(seed):
    rng = np.random.default_rng(seed)
    rotations, place, half, boxes = turned_boxes(rng, 4)
    eye = rng.uniform(-1.2, 1.2, 3)
    rotation = quat_to_matrix(look_at(eye, rng.uniform(-0.3, 0.3, 3)))
    shown = view(eye, rotation, rotations, place)
    culling.cover_image(boxes, np.ones((1, 4), dtype=bool), shown, count=4)
    columns = -(-shown.width // TILE)
    members = culling.members(shown.tiles)
    for box, points in enumerate(inside(rng, rotations, place, half)):
        seen = (points - eye) @ rotation
        seen = seen[seen[:, 2] < -0.01]
        x, y = (0.5 * size - turn * 45.0 * seen[:, axis] / seen[:, 2] for axis, size, turn in ((0, 70, 1), (1, 50, -1)))
        within = (x >= 0) & (x < 70) & (y >= 0) & (y < 50)
        for tile in set((y[within] // TILE * columns + x[within] // TILE).astype(int)):
            assert box in members[tile]


def test_what_is_turned_away_is_in_no_tile():
    rng = np.random.default_rng(0)
    rotations, place, _, boxes = turned_boxes(rng, 40)
    active = np.arange(40) % 3 > 0
    eye = np.array([3.0, 0, 0])
    shown = view(eye, quat_to_matrix(look_at(eye, (0, 0, 0))), rotations, place)
    culling.cover_image(boxes, active[None], shown, count=30)
    found = {mesh for members in culling.members(shown.tiles) for mesh in members}
    assert found <= set(np.flatnonzero(active[:30])) and len(found) > 10


@settings(max_examples=60)
@given(seeds)
def test_every_point_in_a_casters_shadow_finds_it_in_its_cell(seed):
    rng = np.random.default_rng(seed)
    rotations, place, half, boxes = turned_boxes(rng, 4)
    casts = np.array([True, False, True, True])
    towards = rng.normal(size=3)
    towards /= np.linalg.norm(towards)
    across = np.cross(towards, (0.3, 0.5, 0.8))
    across /= np.linalg.norm(across)
    along = np.cross(towards, across)
    steps = Steps()
    steps.world_R_mesh, steps.positions = wp.array(rotations, dtype=wp.mat33), wp.array(place, dtype=wp.vec3)
    steps.margins = wp.zeros(4, dtype=wp.vec2)
    culling.cover_light(boxes, casts[None], steps, (along, across))
    members = culling.members(steps.cells)
    assert not any(1 in found for found in members)
    corner, scale = steps.grid_corner.numpy()[0], steps.grid_scale.numpy()[0]
    for box, points in enumerate(inside(rng, rotations, place, half)):
        behind = points - rng.uniform(0, 2, (len(points), 1)) * towards
        cell = ((np.stack([behind @ along, behind @ across], -1) - corner) * scale).astype(int)
        for y, x in np.clip(cell, 0, GRID - 1) if casts[box] else ():
            assert box in members[y * GRID + x]
