"""Goals and choices of stored layouts may come from another user's files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from nimbus.datagen.episode.layout import PhysicalLayout
from nimbus.datagen.navigate.goals import NavigationGoal
from nimbus.datagen.navigate.instruct.compose import is_instructed
from nimbus.datagen.randomize.goals import short_instruction
from nimbus.datagen.tasks.steps import Scope, stored_choices
from tests.support.refusals import refusal

GOAL = NavigationGoal(
    scene="a",
    number=0,
    rank=0,
    kind="object",
    start=(0.0, 0.0, 0.0, 0.0),
    goal=(1.0, 2.0, 0.0),
    facing=None,
    name="chair_0",
    object_class="dining_chair",
    rooms=("hall_0", "kitchen_1"),
    geodesic=3.0,
)
WRONG: list[Callable[[dict[str, Any]], object]] = [
    lambda _: None,
    lambda _: 3,
    lambda _: {},
    lambda goal: goal | {"goal": "xyz"},
    lambda goal: goal | {"goal": [1, 2]},
    lambda goal: goal | {"rooms": ["a"]},
    lambda goal: goal | {"object_class": 3},
]


def test_stored_goal_gives_its_instruction():
    drawn = {"goal": GOAL.to_plain()}
    assert NavigationGoal.from_drawn(drawn) == GOAL
    assert short_instruction(PhysicalLayout(objects=(), drawn=drawn)) == "Go to the dining chair in the kitchen."


@pytest.mark.parametrize("spoil", WRONG)
def test_a_layout_without_a_goal_is_one_line(spoil: Callable[[dict[str, Any]], object]):
    layout = PhysicalLayout(objects=(), drawn={"goal": spoil(GOAL.to_plain())})
    assert "has no goal" in refusal(short_instruction, layout)
    assert not is_instructed(layout.drawn)


@pytest.mark.parametrize("choices", [None, 3, {}, {"x in y": 2}, {"x in y": "0"}, {"x in y": -1}, {"x in y": [0]}])
def test_a_layout_without_a_choice_is_one_line(choices: Any):
    scope = Scope({}, stored_choices({"choices": choices}))
    assert "has no choice for 'x in y'" in refusal(scope.choice, "x in y", 2)
