"""Timing of paths, and rounding of their corners."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nimbus.datagen.plan.blend import BlendedPath, blend_corners
from nimbus.datagen.plan.path import edge_is_free, path_is_free, path_length, reduce_path, shortcut_path, thin_path
from nimbus.datagen.plan.timing import RECORD_PERIOD, TimedPath, join_motions, time_path
from tests.support.panda_table import ACCELERATION, HOME, VELOCITY

paths = st.builds(
    lambda seed, count: HOME + np.random.default_rng(seed).uniform(-0.8, 0.8, size=(count, 7)),
    st.integers(0, 10_000),
    st.integers(2, 6),
)


def distance_to_polygon(point: np.ndarray, polygon: np.ndarray) -> float:
    edges = np.diff(polygon, axis=0)
    along = np.einsum("ij,ij->i", point - polygon[:-1], edges) / np.einsum("ij,ij->i", edges, edges)
    nearest = polygon[:-1] + np.clip(along, 0, 1)[:, None] * edges
    return float(np.linalg.norm(point - nearest, axis=1).min())


@settings(max_examples=60)
@given(paths)
def test_a_motion_rests_at_both_ends_and_keeps_its_limits(path: np.ndarray) -> None:
    motion = time_path(path, VELOCITY, ACCELERATION)
    assert motion is not None
    np.testing.assert_array_equal(motion.positions[[0, -1]], path[[0, -1]])
    np.testing.assert_array_equal(motion.velocities[[0, -1]], 0)
    assert np.all(np.abs(motion.velocities) <= 1.01 * VELOCITY)
    between = np.diff(motion.positions, axis=0) / RECORD_PERIOD
    assert np.all(np.abs(between) <= 1.01 * VELOCITY)
    # Mean acceleration over a period; TOPP-RA enforces the limit only at its grid points.
    assert np.all(np.abs(np.diff(motion.velocities, axis=0)) / RECORD_PERIOD <= 1.05 * ACCELERATION)


@settings(max_examples=40)
@given(paths)
def test_samples_are_a_period_apart_and_none_is_idle(path: np.ndarray) -> None:
    motion = time_path(path, VELOCITY, ACCELERATION)
    assert motion is not None
    np.testing.assert_allclose(np.diff(motion.time), RECORD_PERIOD)
    assert motion.time[0] == 0 and len(motion.time) == len(motion.positions) == len(motion.velocities)
    assert np.abs(np.diff(motion.positions, axis=0)).max(axis=1).min() > 1e-6


@settings(max_examples=40)
@given(paths)
def test_rounded_corners_stay_near_the_polygon(path: np.ndarray) -> None:
    motion = time_path(path, VELOCITY, ACCELERATION)
    assert motion is not None
    # A quarter of a radian each way, cut by at most 0.19 of that and the turn, which is at most two.
    assert max(distance_to_polygon(q, path) for q in motion.positions) <= 0.25 * 0.19 * 2


@settings(max_examples=40)
@given(paths)
def test_a_blended_path_has_the_derivatives_it_says(path: np.ndarray) -> None:
    radii = np.zeros(len(path))
    lengths = np.linalg.norm(np.diff(path, axis=0), axis=1)
    radii[1:-1] = 0.4 * np.minimum(lengths[:-1], lengths[1:])
    blended = BlendedPath(path, radii)
    s, step = np.linspace(0.0, blended.length, 101)[1:-1], 1e-5
    np.testing.assert_allclose((blended(s + step) - blended(s - step)) / (2 * step), blended(s, 1), atol=1e-6)
    slope = (blended(s + step, 1) - blended(s - step, 1)) / (2 * step)
    np.testing.assert_allclose(slope, blended(s, 2), atol=1e-2)
    np.testing.assert_allclose(blended(np.array([0.0, blended.length])), path[[0, -1]], atol=1e-12)


def test_a_corner_next_to_an_obstacle_is_rounded_less() -> None:
    path = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    wide = blend_corners(path, lambda q: True)
    narrow = blend_corners(path, lambda q: q[0] > 0.99 or q[1] < 0.01)
    corner = np.array([1.0])
    assert np.linalg.norm(wide(corner) - [1, 0]) > 2 * np.linalg.norm(narrow(corner) - [1, 0]) > 0


def test_when_no_rounding_is_free_the_polygon_is_followed_with_stops() -> None:
    path = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    # The smallest rounding cuts the corner by 8 mrad, the B-spline through the stop by less than one.
    motion = time_path(path, [1, 1], [5, 5], is_free=lambda q: distance_to_polygon(q, path) < 3e-3)
    assert motion is not None
    assert max(distance_to_polygon(q, path) for q in motion.positions) < 1e-9
    corner = int(np.linalg.norm(motion.positions - path[1], axis=1).argmin())
    np.testing.assert_allclose(motion.positions[corner], path[1], atol=1e-9)
    np.testing.assert_allclose(motion.velocities[corner], 0, atol=1e-9)
    assert np.all(np.abs(motion.velocities) <= 1 + 1e-6)


def test_a_path_that_is_not_free_has_no_timing() -> None:
    assert time_path([[0.0, 0.0], [1.0, 0.0]], [1, 1], [5, 5], is_free=lambda q: q[0] < 0.5) is None


def test_a_motion_to_the_same_place_takes_one_period() -> None:
    motion = time_path([HOME, HOME], VELOCITY, ACCELERATION)
    assert motion is not None and len(motion.time) == 2


def test_a_motion_is_stretched_to_its_least_duration() -> None:
    motion = time_path([HOME, HOME + 0.1], VELOCITY, ACCELERATION, min_duration=1.5)
    assert motion is not None and motion.time[-1] == pytest.approx(23 * RECORD_PERIOD)


def test_joined_motions_follow_each_other_without_a_gap() -> None:
    one = time_path([HOME, HOME + 0.3], VELOCITY, ACCELERATION)
    other = time_path([HOME + 0.3, HOME - 0.1], VELOCITY, ACCELERATION)
    assert isinstance(one, TimedPath) and isinstance(other, TimedPath)
    both = join_motions([one, other])
    assert len(both.time) == len(one.time) + len(other.time) - 1
    np.testing.assert_allclose(np.diff(both.time), RECORD_PERIOD)
    np.testing.assert_array_equal(both.positions[-1], HOME - 0.1)


def wall(q: np.ndarray, *, thickness: float = 0.2) -> bool:
    return not (abs(q[0] - 0.5) < 0.5 * thickness and q[1] < 0.4 + 0.5 * thickness)


def test_an_edge_through_a_thin_wall_is_not_free() -> None:
    assert not edge_is_free(np.array([0.0, 0.0]), np.array([1.0, 0.0]), wall)
    assert edge_is_free(np.array([0.0, 0.6]), np.array([1.0, 0.6]), wall)


@settings(max_examples=60)
@given(st.integers(0, 10_000))
def test_shortened_paths_are_free_no_longer_and_end_where_they_did(seed: int) -> None:
    rng = np.random.default_rng(seed)
    detour = rng.uniform([0.0, 0.7], [1.0, 1.5], size=(4, 2))
    path = np.vstack([[0.0, 0.0], [0.0, 0.7], detour, [1.0, 0.7], [1.0, 0.0]])
    if not path_is_free(path, wall, step=0.005):
        return
    for shorter in (reduce_path(path, wall), shortcut_path(path, wall, rng=rng)):
        assert path_length(shorter) <= path_length(path) + 1e-9
        np.testing.assert_array_equal(shorter[[0, -1]], path[[0, -1]])
        # Between two checks, a corner may be cut by half their distance.
        assert path_is_free(shorter, lambda q: wall(q, thickness=0.17), step=0.005)


def test_thinning_keeps_a_curve_within_its_tolerance() -> None:
    angle = np.linspace(0, 1, 200)
    curve = np.column_stack([np.cos(angle), np.sin(angle)])
    thin = thin_path(curve, tolerance=1e-3)
    assert 2 < len(thin) < 30
    assert max(distance_to_polygon(point, thin) for point in curve) < 1e-3
