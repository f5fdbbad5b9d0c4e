"""Offsets at which objects are released in a container with contents."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nimbus.datagen.execute.motions.containers import sort_by_distance

SHIFTS = [np.array(shift) for shift in ((0.0, 0.0), (0.06, 0.0), (-0.06, 0.0), (0.0, 0.04), (0.0, -0.04))]
millimeters = st.floats(-0.003, 0.003)


@settings(max_examples=30)
@given(st.lists(st.tuples(millimeters, millimeters), min_size=2, max_size=2))
def test_millimeters_do_not_choose_the_side_of_the_contents(moved: list[tuple[float, float]]) -> None:
    contents = np.array([(0.0, 0.0), (0.0, 0.04)]) + moved
    order = sort_by_distance(SHIFTS, list(contents))
    assert [tuple(shift) for shift in order[:3]] == [(0.06, 0.0), (-0.06, 0.0), (0.0, -0.04)]


def test_the_offset_furthest_from_the_contents_comes_first() -> None:
    first, *others = sort_by_distance(SHIFTS, [np.array([0.05, 0.01]), np.array([0.0, -0.02])])
    assert tuple(first) == (-0.06, 0.0) and len(others) == 4
