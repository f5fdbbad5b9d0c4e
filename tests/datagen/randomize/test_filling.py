"""Objects that start inside another: inside its walls, apart, below the rim."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.randomize.placement import NoRoomError, fill

CAVITY = np.array([[-0.03, -0.03, -0.02], [0.03, 0.03, 0.05]])


@settings(max_examples=50)
@given(count=st.integers(1, 30), seed=st.integers(0, 1000))
def test_beads_are_apart_and_inside_the_walls(count: int, seed: int):
    bead = open_library("beads").model("red_bead", 0)
    points = np.array(fill(CAVITY, [bead] * count, np.random.default_rng(seed)))
    radius = float((bead.bounds[1] - bead.bounds[0]).max() / 2)
    assert len(points) == count
    assert (np.linalg.norm(points[:, :2], axis=1) + radius <= 0.03).all()
    assert (points[:, 2] - radius >= CAVITY[0, 2]).all() and (points[:, 2] + radius <= CAVITY[1, 2]).all()
    distances = np.linalg.norm(points[:, None] - points[None], axis=2) + np.eye(count)
    assert distances.min() >= 2 * radius


@pytest.mark.parametrize(("kind", "library", "count"), [("red_bead", "beads", 500), ("can", "trash", 1)])
def test_what_does_not_fit_is_refused(kind: str, library: str, count: int):
    model = open_library(library).model(kind, 0)
    with pytest.raises(NoRoomError):
        fill(CAVITY, [model] * count, np.random.default_rng(0))
