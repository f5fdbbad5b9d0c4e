import itertools
from collections import deque
from typing import Any

import numpy as np
import warp as wp
from hypothesis import given, settings
from hypothesis import strategies as st

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.geometry.transforms import look_at, quat_to_matrix
from nimbus.datagen.render.raytracer import culling
from nimbus.datagen.render.raytracer.kernel_data import GRID, TILE, Boxes, DeviceLight, DeviceScene, Steps, Views

seeds = st.integers(0, 2**32 - 1)
_kept: deque[Any] = deque(maxlen=1)
"""Scene of the running test, kept because an array of structures does not own their arrays."""


def light_planes(rectangles: FloatArray, towards: FloatArray) -> FloatArray:
    """Return the terms of shadow rays and rectangles.

    Three linear functions (K, G, 3, 4) of a point (x, y, z, 1): its distance to the rectangle along the light, and the
    coordinates along its two edges there.

    Args:
        rectangles: (K, G, 4, 3) first corner, unit normal, edges over the squares of their lengths; world frame.
        towards: (3,) direction to the light.
    """
    normal, edges = rectangles[:, :, 1:2], rectangles[:, :, 2:]
    facing = normal @ towards
    # Light along the plane of a rectangle never meets it.
    scaled = normal / np.where(np.abs(facing) > 1e-9, facing, np.inf)[..., None]
    slopes = np.concatenate([-scaled, edges - (edges @ towards)[..., None] * scaled], axis=2)
    return np.concatenate([slopes, -(slopes @ rectangles[:, :, 0][..., None])], axis=3)


def scene_of(lower, upper, *, rectangles):
    """Return a scene of boxes [m], one for each mesh."""
    scene, boxes = DeviceScene(), Boxes()
    boxes.count, boxes.eight, boxes.mesh = len(lower), 8, wp.array(np.arange(len(lower)), dtype=wp.int32)
    boxes.lower, boxes.upper = wp.array(lower, dtype=wp.vec3), wp.array(upper, dtype=wp.vec3)
    scene.boxes, scene.mesh_count, scene.rectangle_count = boxes, len(lower), rectangles
    _kept.append(scene)
    return wp.array([scene], dtype=DeviceScene)


def light_of(along, across):
    light = DeviceLight()
    light.along, light.across = wp.vec3(*along), wp.vec3(*across)
    return wp.array([light], dtype=DeviceLight)


def one_step(rotations, place, casts):
    """Return a step of meshes; those in ``casts`` cast shadows."""
    steps, count = Steps(), len(place)
    steps.layouts, steps.mesh_rows, steps.box_rows = wp.zeros(1, dtype=wp.int32), count, count
    steps.active = wp.array(np.asarray(casts, dtype=np.uint8), dtype=wp.uint8)
    steps.world_R_mesh, steps.positions = wp.array(rotations, dtype=wp.mat33), wp.array(place, dtype=wp.vec3)
    steps.margins = wp.zeros(count, dtype=wp.vec2)
    return steps


def turned_boxes(rng, count):
    """Return boxes around the origin in separate frames: poses and half sides."""
    wxyz = rng.normal(size=(count, 4))
    rotations = quat_to_matrix(wxyz / np.linalg.norm(wxyz, axis=1, keepdims=True))
    half, place = rng.uniform(0.01, 0.5, (count, 3)), rng.uniform(-1, 1, (count, 3))
    return rotations, place, half


def inside(rng, rotations, place, half, count=50):
    """Return random points in each box (G, count, 3)."""
    local = rng.uniform(-1, 1, (len(half), count, 3)) * half[:, None]
    return local @ np.swapaxes(rotations, 1, 2) + place[:, None]


def view(eye, rotation, rotations, place, seen, *, width=70, height=50, focal=45.0):
    shown = Views()
    shown.width, shown.height, shown.focals = width, height, wp.array([focal], dtype=wp.float32)
    shown.layouts, shown.seen = wp.zeros(1, dtype=wp.int32), wp.array(seen.astype(np.uint8), dtype=wp.uint8)
    local = np.swapaxes(rotations, 1, 2)
    shown.origins = wp.array((local @ (eye - place)[..., None])[..., 0], dtype=wp.vec3)
    shown.mesh_R_camera = wp.array(local @ rotation, dtype=wp.mat33)
    return shown


@settings(max_examples=60)
@given(seeds)
def test_every_point_of_a_box_that_is_in_the_image_lies_in_a_tile_of_its_set(seed):
    rng = np.random.default_rng(seed)
    rotations, place, half = turned_boxes(rng, 4)
    eye = rng.uniform(-1.2, 1.2, 3)
    rotation = quat_to_matrix(look_at(eye, rng.uniform(-0.3, 0.3, 3)))
    shown = view(eye, rotation, rotations, place, np.ones(4))
    culling.cover_image(scene_of(-half, half, rectangles=4), shown, mesh_rows=4, rectangle_rows=4)
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
    rotations, place, half = turned_boxes(rng, 40)
    active = np.arange(40) % 3 > 0
    eye = np.array([3.0, 0, 0])
    shown = view(eye, quat_to_matrix(look_at(eye, (0, 0, 0))), rotations, place, active)
    culling.cover_image(scene_of(-half, half, rectangles=30), shown, mesh_rows=40, rectangle_rows=30)
    found = {mesh for members in culling.members(shown.tiles) for mesh in members}
    assert found <= set(np.flatnonzero(active[:30])) and len(found) > 10


@settings(max_examples=60)
@given(seeds)
def test_every_point_in_a_casters_shadow_finds_it_in_its_cell(seed):
    rng = np.random.default_rng(seed)
    rotations, place, half = turned_boxes(rng, 4)
    casts = np.array([True, False, True, True])
    towards = rng.normal(size=3)
    towards /= np.linalg.norm(towards)
    across = np.cross(towards, (0.3, 0.5, 0.8))
    across /= np.linalg.norm(across)
    along = np.cross(towards, across)
    steps = one_step(rotations, place, casts)
    corners = half[:, None] * np.array(list(itertools.product((-1, 1), repeat=3)))
    reach = (corners @ np.swapaxes(rotations, 1, 2) + place[:, None]) @ np.stack([along, across], -1)
    extents = wp.array(np.concatenate([reach.min(axis=1), reach.max(axis=1)], axis=1), dtype=wp.vec4d)
    culling.cover_light(scene_of(-half, half, rectangles=0), light_of(along, across), steps, extents)
    members = culling.members(steps.cells)
    assert not any(1 in found for found in members)
    corner, scale = steps.grid_corner.numpy()[0], steps.grid_scale.numpy()[0]
    for box, points in enumerate(inside(rng, rotations, place, half)):
        behind = points - rng.uniform(0, 2, (len(points), 1)) * towards
        cell = ((np.stack([behind @ along, behind @ across], -1) - corner) * scale).astype(int)
        for y, x in np.clip(cell, 0, GRID - 1) if casts[box] else ():
            assert box in members[y * GRID + x]


@settings(max_examples=60)
@given(seeds)
def test_cells_beside_a_rectangles_shadow_leave_it_out(seed):
    """Cells in the shadow list the rectangle; most cells around it do not."""
    rng = np.random.default_rng(seed)
    wxyz = rng.normal(size=(2, 4))
    (along, across, towards), turn = quat_to_matrix(wxyz / np.linalg.norm(wxyz, axis=1, keepdims=True))
    normal, one, other = turn[0] * np.sign(turn[0] @ towards), turn[1] * 0.6, turn[2] * rng.uniform(0.02, 0.3)
    corner = rng.uniform(-1, 1, 3)
    edges = [edge / (edge @ edge) for edge in (one, other)]
    rectangle = np.stack([corner, normal, *edges])[None, None]
    places = np.stack([corner, corner + one, corner + other, corner + one + other])
    scene = scene_of(places.min(axis=0)[None], places.max(axis=0)[None], rectangles=1)
    steps = one_step(np.eye(3)[None], np.zeros((1, 3)), [True])
    steps.shades = wp.array(light_planes(rectangle, towards).reshape(-1, 4), dtype=wp.vec4)
    reach = places @ np.stack([along, across], -1)
    extents = wp.array([[*reach.min(axis=0), *reach.max(axis=0)]], dtype=wp.vec4d)
    culling.cover_light(scene, light_of(along, across), steps, extents)
    members = culling.members(steps.cells)
    shares = rng.uniform(0, 1, (200, 2))
    points = corner + shares[:, :1] * one + shares[:, 1:] * other - rng.uniform(0, 2, (200, 1)) * towards
    grid = steps.grid_corner.numpy()[0], steps.grid_scale.numpy()[0]
    cells = ((np.stack([points @ along, points @ across], -1) - grid[0]) * grid[1]).astype(int)
    assert all(members[y * GRID + x] == [0] for y, x in np.clip(cells, 0, GRID - 1))
    shadow = abs(np.linalg.det(np.stack([one, other]) @ np.stack([along, across], -1))) * np.prod(grid[1])
    assert sum(map(bool, members)) < 1.1 * shadow + 8 * GRID
