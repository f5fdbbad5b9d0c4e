import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nimbus.datagen.render import culling
from nimbus.datagen.render.kernel_data import GRID, TILE
from nimbus.datagen.rotations import look_at, to_matrix

seeds = st.integers(0, 2**32 - 1)
PICK = np.array([[(corner >> axis) & 1 for axis in range(3)] for corner in range(8)])


def boxes(rng, count):
    """Turned boxes around the origin: corners (1, count, 8, 3)."""
    wxyz = rng.normal(size=(count, 4))
    rotations = to_matrix(wxyz / np.linalg.norm(wxyz, axis=1, keepdims=True))
    size, place = rng.uniform(0.02, 1.0, (count, 1, 3)), rng.uniform(-1, 1, (count, 1, 3))
    return (((PICK - 0.5) * size) @ np.swapaxes(rotations, 1, 2) + place)[None]


def inside(rng, corners, count=50):
    """Random points in each box (G, count, 3)."""
    share = rng.dirichlet(np.ones(8), (corners.shape[1], count))
    return share @ corners[0]


@settings(max_examples=60, deadline=None)
@given(seeds)
def test_every_point_of_a_box_that_is_in_the_image_lies_in_a_tile_of_its_list(seed):
    rng = np.random.default_rng(seed)
    width, height, focal = 70, 50, 45.0
    corners = boxes(rng, 4)
    eye = rng.uniform(-1.2, 1.2, 3)
    rotation = to_matrix(look_at(eye, rng.uniform(-0.3, 0.3, 3)))
    nearest, (start, members) = culling.image_tiles(
        corners, np.ones((1, 4), dtype=bool), eye[None], rotation[None], focal=focal, width=width, height=height
    )
    columns = -(-width // TILE)
    for box, points in enumerate(inside(rng, corners)):
        seen = (points - eye) @ rotation
        seen = seen[seen[:, 2] < -0.01]
        x, y = 0.5 * width - focal * seen[:, 0] / seen[:, 2], 0.5 * height + focal * seen[:, 1] / seen[:, 2]
        shown = (x >= 0) & (x < width) & (y >= 0) & (y < height)
        for tile in set((y[shown] // TILE * columns + x[shown] // TILE).astype(int)):
            assert box in members[start[tile] : start[tile + 1]]
        assert np.all(-seen[:, 2] >= nearest[0, box] - 1e-5)


@settings(max_examples=60, deadline=None)
@given(seeds)
def test_lists_run_from_near_to_far(seed):
    rng = np.random.default_rng(seed)
    rotation = to_matrix(look_at((3, 0, 0), (0, 0, 0)))
    nearest, (start, members) = culling.image_tiles(
        boxes(rng, 5),
        np.ones((1, 5), dtype=bool),
        np.array([[3.0, 0, 0]]),
        rotation[None],
        focal=45.0,
        width=70,
        height=50,
    )
    for first, last in zip(start[:-1], start[1:], strict=True):
        assert np.all(np.diff(nearest[0, members[first:last]]) >= 0)


@settings(max_examples=60, deadline=None)
@given(seeds)
def test_every_point_in_a_casters_shadow_finds_it_in_its_cell(seed):
    rng = np.random.default_rng(seed)
    corners, casts = boxes(rng, 4), np.array([True, False, True, True])
    towards = rng.normal(size=3)
    towards /= np.linalg.norm(towards)
    across = np.cross(towards, (0.3, 0.5, 0.8))
    across /= np.linalg.norm(across)
    along = np.cross(towards, across)
    corner, scale, (start, members) = culling.light_grid(corners, casts[None], across, along)
    assert 1 not in members
    for box, points in enumerate(inside(rng, corners)):
        behind = points - rng.uniform(0, 2, (len(points), 1)) * towards
        cell = ((np.stack([behind @ across, behind @ along], -1) - corner[0]) * scale[0]).astype(int)
        for x, y in cell if casts[box] else ():
            place = min(y, GRID - 1) * GRID + min(x, GRID - 1)
            assert box in members[start[place] : start[place + 1]]
