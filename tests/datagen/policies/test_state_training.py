"""Rows of an episode that a state policy learns from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nimbus.datagen.episode.trajectory import DISTURBED, SkillSegment
from nimbus.datagen.policies.state_training import HORIZON, find_learned_rows
from tests.support.synthetic import make_trajectory


def test_rows_of_pushes_are_not_learned():
    parts = [(0, 30, "pick"), (30, 36, DISTURBED), (36, 40, "policy"), (40, 60, "pick")]
    segments = tuple(
        SkillSegment(start=start, stop=stop, skill=skill, target="items_0", phase="") for start, stop, skill in parts
    )
    made = replace(make_trajectory(steps=60), segments=segments)
    left_out = np.flatnonzero(~find_learned_rows(made, without="policy"))
    assert left_out.tolist() == list(range(30 - HORIZON + 1, 40))
    assert find_learned_rows(make_trajectory(steps=60)).all()
