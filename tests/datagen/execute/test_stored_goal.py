"""Goals of replayed drives, which come from foreign files."""

from __future__ import annotations

from typing import Any

import pytest

from nimbus.datagen.episode.layout import PhysicalLayout
from nimbus.datagen.execute.path_planner import _stored_goal
from tests.support.refusals import refusal


@pytest.mark.parametrize(
    "drawn", [{}, {"goal": 3}, {"goal": {}}, {"goal": {"goal": "xyz"}}, {"goal": {"goal": [1, 2]}}]
)
def test_a_layout_without_a_goal_is_one_line(drawn: dict[str, Any]):
    assert "has no goal" in refusal(_stored_goal, PhysicalLayout(objects=(), drawn=drawn))
