"""Placement on a surface: properties of the distance function, and objects that keep their distances."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.spatial import ConvexHull, QhullError

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.geometry.transforms import quat_from_axis_angle
from nimbus.datagen.random_streams import generator
from nimbus.datagen.randomize.placement import NoRoomError, PlacementPose, find_places, footprint, gap, moved, rectangle

CENTER, SIZE = (0.5, -0.1), (0.4, 0.5)


def distance(one: FloatArray, other: FloatArray) -> float:
    """Return the distance of two convex outlines, from their Minkowski difference; 0 if they overlap."""
    differences = (one[:, None] - other[None]).reshape(-1, 2)
    hull = ConvexHull(differences)
    if hull.equations[:, 2].max() <= 0:
        return 0.0
    start, end = differences[hull.simplices[:, 0]], differences[hull.simplices[:, 1]]
    along = end - start
    share = np.clip(-(start * along).sum(axis=1) / (along**2).sum(axis=1), 0, 1)
    return float(np.linalg.norm(start + share[:, None] * along, axis=1).min())


@st.composite
def outlines(draw) -> FloatArray:
    points = draw(st.lists(st.tuples(st.integers(-20, 20), st.integers(-20, 20)), min_size=3, max_size=9, unique=True))
    try:
        hull = ConvexHull(np.array(points, dtype=float))
    except QhullError:
        assume(False)
        raise
    shift = draw(st.tuples(st.integers(-40, 40), st.integers(-40, 40)))
    return 0.01 * (hull.points[hull.vertices] + shift)


@given(outlines(), outlines())
def test_the_gap_is_a_lower_bound_of_the_distance_and_tells_overlap(one, other):
    exact, bound = distance(one, other), gap(one, other)
    assert bound <= exact + 1e-9
    assert (bound > 1e-9) == (exact > 1e-9)
    assert gap(other, one) == bound


@given(st.floats(0.01, 0.5))
def test_the_gap_of_facing_sides_is_their_distance(apart):
    left, right = rectangle((0, 0), (1, 1)), rectangle((1 + apart, 0.2), (2 + apart, 0.7))
    assert gap(left, right) == pytest.approx(apart)


@given(outlines(), st.floats(-1, 1), st.floats(-1, 1), st.floats(-math.pi, math.pi))
def test_a_moved_outline_is_turned_about_its_origin_and_shifted(outline, x, y, yaw):
    there = moved(outline, PlacementPose(x, y, yaw))
    turned = [complex(*point) * complex(math.cos(yaw), math.sin(yaw)) + complex(x, y) for point in outline]
    assert np.allclose(there, [(point.real, point.imag) for point in turned])


def test_the_footprint_of_a_lying_box_is_its_shadow():
    box = np.array([(x, y, z) for x in (-1, 1) for y in (-2, 2) for z in (-3, 3)])
    outline = footprint(box, quat_from_axis_angle((0, 1, 0), math.pi / 2))
    assert np.allclose(np.abs(outline), (3, 2))
    assert len(outline) == 4


sizes = st.tuples(st.floats(0.02, 0.1), st.floats(0.02, 0.1))


@settings(max_examples=40)
@given(st.lists(sizes, min_size=1, max_size=4), st.floats(0, 0.04), st.integers(0, 2**32), st.floats(-3, 2.9))
def test_objects_lie_in_the_region_apart_and_within_reach(extents, clearance, seed, yaw):
    shapes = [rectangle((-x / 2, -y / 2), (x / 2, y / 2)) for x, y in extents]
    post = rectangle((0.48, -0.12), (0.52, -0.08))

    def reachable(x: float, y: float) -> bool:
        return y < 0.08

    places = find_places(
        shapes,
        [generator(seed, place) for place in range(len(shapes))],
        center=CENTER,
        size=SIZE,
        yaw=(yaw, yaw + 0.1),
        clearance=clearance,
        obstacles=[post],
        reachable=reachable,
    )
    there = [moved(shape, place) for shape, place in zip(shapes, places, strict=True)]
    for place in places:
        assert abs(place.x - CENTER[0]) <= SIZE[0] / 2 and abs(place.y - CENTER[1]) <= SIZE[1] / 2
        assert yaw <= place.yaw <= yaw + 0.1
        assert reachable(place.x, place.y)
    assert all(distance(one, other) >= clearance - 1e-9 for one, other in combinations([*there, post], 2))


def place_squares(count: int, *, side: float, size: tuple[float, float], **options) -> list[PlacementPose]:
    square = rectangle((-side / 2, -side / 2), (side / 2, side / 2))
    streams = [generator(0, place) for place in range(count)]
    return find_places([square] * count, streams, center=(0, 0), size=size, yaw=(0, 0), clearance=0.03, **options)


def test_a_region_too_small_is_refused():
    with pytest.raises(NoRoomError):
        place_squares(4, side=0.1, size=(0.15, 0.15))


def test_a_region_out_of_reach_is_refused():
    with pytest.raises(NoRoomError):
        place_squares(1, side=0.1, size=(1, 1), reachable=lambda x, y: False)


def test_no_objects_need_no_room():
    assert place_squares(0, side=0.1, size=(0.01, 0.01)) == []


def test_a_tight_region_is_filled_by_starting_over():
    places = place_squares(4, side=0.1, size=(0.2, 0.2))
    assert len(places) == 4


def test_what_cannot_fit_by_its_area_is_refused_without_a_draw():
    square = rectangle((-0.05, -0.05), (0.05, 0.05))
    streams = [np.random.default_rng(index) for index in range(64)]
    before = [rng.bit_generator.state for rng in streams]
    with pytest.raises(NoRoomError):
        find_places([square] * 64, streams, center=(0, 0), size=(0.3, 0.3), yaw=(0, 0), clearance=0.03)
    assert [rng.bit_generator.state for rng in streams] == before


def test_an_object_larger_than_its_region_still_fits_there():
    square = rectangle((-0.05, -0.05), (0.05, 0.05))
    places = find_places(
        [square], [np.random.default_rng(0)], center=(0, 0), size=(0.001, 0.001), yaw=(0, 0), clearance=0.03
    )
    assert len(places) == 1
