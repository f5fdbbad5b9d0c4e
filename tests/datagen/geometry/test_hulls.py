"""Widths of convex hulls."""

from __future__ import annotations

import numpy as np
import pytest

from nimbus.datagen.geometry.hulls import narrowest_width

_BRICK = np.array([[sx * 0.05, sy * 0.03] for sx in (-1, 1) for sy in (-1, 1)])


@pytest.mark.parametrize("heading", [0.0, 4.0, 45.0, 91.7])
def test_narrowest_width_does_not_depend_on_heading(heading: float):
    """A wiper's strokes must not move apart when it is turned."""
    c, s = np.cos(np.radians(heading)), np.sin(np.radians(heading))
    assert narrowest_width(_BRICK @ np.array([[c, s], [-s, c]])) == pytest.approx(0.06)


def test_narrowest_width_of_a_triangle_is_its_smallest_height():
    assert narrowest_width(np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 3.0]])) == pytest.approx(2.4)
