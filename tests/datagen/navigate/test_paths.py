"""Paths over free cells are shortest, straightened, smoothed, and driven within limits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from nimbus.datagen.arrays import BoolArray
from nimbus.datagen.navigate.body import BodyShape
from nimbus.datagen.navigate.drive import DriveLimits, drive_path, integrate
from nimbus.datagen.navigate.free_space import FreeSpace, free_space_of_grid
from nimbus.datagen.navigate.search import PathSearch
from nimbus.datagen.navigate.sight import LineOfSight
from nimbus.datagen.navigate.smooth import smooth_path

BODY = BodyShape(radius=0.25, height=1.0, step=0.02)
POINT = BodyShape(radius=0.0, height=1.0, step=0.02)


def furnished(seed: int, count: int = 12) -> BoolArray:
    """Draw a map of a room that contains boxes."""
    rng, grid = np.random.default_rng(seed), np.ones((160, 140), dtype=bool)
    grid[[0, -1]] = grid[:, [0, -1]] = False
    for x, y, width, depth in rng.integers((0, 0, 3, 3), (150, 130, 30, 30), (count, 4)):
        grid[x : x + width, y : y + depth] = False
    return grid


def routes(seed: int, count: int = 4) -> tuple[FreeSpace, list[tuple[int, int]]]:
    """Draw a furnished room and pairs of nodes in its largest component."""
    space, rng = free_space_of_grid(furnished(seed), BODY), np.random.default_rng(seed)
    return space, [(int(a), int(b)) for a, b in rng.choice(space.main_nodes, (count, 2))]


@pytest.mark.parametrize("seed", range(4))
def test_lengths_equal_those_of_dijkstra(seed: int):
    rng = np.random.default_rng(seed)
    space = free_space_of_grid(rng.uniform(size=(40, 30)) > 0.3, POINT, cell=1.0)
    rows, ways = np.nonzero(space.neighbors >= 0)
    lengths = np.where(ways % 2, np.sqrt(2), 1.0)
    graph = csr_array((lengths, (rows, space.neighbors[rows, ways])), shape=(len(space.nodes),) * 2)
    search = PathSearch(space, np.ones(len(space.nodes), dtype=bool))
    starts, goals = rng.integers(len(space.nodes), size=(2, 25))
    expected = dijkstra(graph, indices=starts)[np.arange(25), goals]
    np.testing.assert_allclose(
        [search.length(int(a), int(b)) for a, b in zip(starts, goals, strict=True)], expected, rtol=1e-12
    )
    every = dijkstra(graph, indices=starts[0])[goals]
    np.testing.assert_allclose(search.distances(int(starts[0]), goals), every, rtol=1e-12)
    near = every <= 12.0
    found = search.distances(int(starts[0]), goals, within=12.0)
    np.testing.assert_allclose(found[near], every[near], rtol=1e-12)
    assert np.all(found[~near] > 12.0)


def test_straight_walks_are_those_of_fine_samples():
    """A straight path is free if and only if the line between two cell centers crosses only free cells."""
    rng = np.random.default_rng(0)
    grid = rng.uniform(size=(30, 30)) > 0.1
    space = free_space_of_grid(grid, POINT, cell=1.0)
    sight = LineOfSight(space, np.ones(len(space.nodes), dtype=bool))
    first, last = rng.integers(len(space.nodes), size=(2, 300))
    a, b = space.nodes[first, 1:] + 0.5, space.nodes[last, 1:] + 0.5
    shares = np.linspace(0, 1, 2001)[:, None, None]
    cells = np.floor(a + shares * (b - a) + 1e-9).astype(int)
    sampled = grid[cells[..., 0], cells[..., 1]].all(axis=0)
    found = sight.is_free(first, last)
    assert not np.any(found & ~sampled)
    assert np.mean(found == sampled) > 0.95  # samples miss corners that two cells share


def test_taut_path_reaches_the_exact_length_around_a_wall():
    grid = np.ones((200, 200), dtype=bool)
    grid[80:120, :150] = False
    space = free_space_of_grid(grid, POINT)
    search, sight = PathSearch(space), LineOfSight(space)
    start, goal = space.locate(np.array([(1.025, 1.025, 0), (9.025, 1.025, 0)]))
    path = search.path(int(start), int(goal))
    assert path is not None
    corners = np.array([(1.025, 1.025), (3.975, 7.525), (6.025, 7.525), (9.025, 1.025)])
    exact = np.linalg.norm(np.diff(corners, axis=0), axis=1).sum()
    assert sight.length(sight.taut(path)) == pytest.approx(exact, rel=0.005)


@pytest.mark.parametrize("is_mirrored", [False, True])
def test_taut_path_takes_the_shorter_side_of_an_obstacle(is_mirrored: bool):
    """Both sides have equal lengths in cells, so that a search from the start alone finds the longer one."""
    grid = np.ones((160, 160), dtype=bool)
    grid[70:87, 46:63] = False
    first, corner, last = np.array([(20.0, 20), (87, 45), (140, 80)])
    if is_mirrored:
        grid = grid[::-1, ::-1]
        first, corner, last = 159 - first, 159 - corner, 159 - last
    space = free_space_of_grid(grid, POINT, cell=1.0)
    search, sight = PathSearch(space), LineOfSight(space)
    start, goal = (int(space.node[0][tuple(end.astype(int))]) for end in (first, last))
    there, back = search.path(start, goal), search.path(goal, start)
    assert there is not None
    assert back is not None
    exact = np.linalg.norm(corner - first) + np.linalg.norm(last - corner)
    assert sight.length(sight.taut(there)) > 1.01 * exact
    assert sight.length(sight.taut(there, back[::-1])) == pytest.approx(exact, rel=2e-3)


@pytest.mark.parametrize("seed", range(3))
def test_smooth_paths_keep_the_limit(seed: int):
    space, pairs = routes(seed)
    search, sight = PathSearch(space), LineOfSight(space)
    for start, goal in pairs:
        path, shortest = search.path(start, goal, wide=0.6), search.path(start, goal)
        assert path is not None
        assert shortest is not None
        smooth = smooth_path(space, space.positions[path])
        assert space.clearance_at(smooth).min() >= space.limit
        geodesic, length = sight.length(sight.taut(shortest)), np.linalg.norm(np.diff(smooth, axis=0), axis=1).sum()
        assert geodesic <= search.length(start, goal) + 1e-9
        assert geodesic - 0.15 <= length <= 1.6 * geodesic + 0.2


def test_drives_obey_limits_and_arrive():
    space, pairs = routes(1, 6)
    limits = DriveLimits(speed=0.6, turn=1.2)
    for start, goal in pairs:
        path = PathSearch(space).path(start, goal, wide=0.6)
        assert path is not None
        smooth = smooth_path(space, space.positions[path])
        driven = drive_path(smooth, limits, rate=10, yaw=0.3, end_yaw=2.0)
        assert np.abs(driven.actions[:, 0]).max() <= limits.speed + 1e-9
        assert np.abs(driven.actions[:, 1]).max() <= limits.turn + 1e-9
        assert np.linalg.norm(driven.poses[-1, :2] - smooth[-1, :2]) < 0.05
        assert np.cos(driven.poses[-1, 2] - 2.0) > 0.999
        np.testing.assert_array_equal(integrate(driven.poses[0], driven.actions, 10), driven.poses)
