"""Searches in maps of Moving AI's format find the optimal lengths."""

from __future__ import annotations

import numpy as np
import pytest

from nimbus.datagen.navigate.body import BodyShape
from nimbus.datagen.navigate.free_space import free_space_of_grid
from nimbus.datagen.navigate.search import PathSearch
from tests.support.moving_ai import FOLDER, PROBLEMS, exact_length, read_map, read_problems

POINT = BodyShape(radius=0.0, height=1.0, step=0.02)


@pytest.mark.parametrize("name", ["rooms", "arena"])
def test_all_lengths_of_moving_ai_are_optimal(name: str):
    free, problems = read_map(FOLDER / f"{name}.map"), read_problems(FOLDER / f"{name}.scen")
    assert len(problems) == PROBLEMS
    space = free_space_of_grid(free, POINT, cell=1.0)
    search = PathSearch(space, np.ones(len(space.nodes), dtype=bool))
    for start, goal, optimal in problems:
        found = search.length(int(space.node[0][start]), int(space.node[0][goal]))
        assert found == pytest.approx(optimal, abs=1e-6)
    for start, goal, optimal in problems[:3]:
        assert exact_length(free, start, goal) == pytest.approx(optimal, abs=1e-8)
