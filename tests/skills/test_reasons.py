"""The reasons that `nimbus skills NAME` lists, compared with those in the code of the skill."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Iterator
from typing import Any

import pytest

from nimbus.datagen import registry
from nimbus.datagen.episode.trajectory import Reason
from nimbus.datagen.plan.motion import MotionPlan, MotionStatus
from nimbus.datagen.tasks.plugins import discover
from nimbus.datagen.tasks.statements import MOTION_REASONS

discover()

CODE = (
    "nimbus.skills.",
    "nimbus.datagen.execute.motions.",
    "nimbus.datagen.execute.articulation",
    "nimbus.datagen.execute.demonstrations.",
)


HANDLED = {
    "insert": {Reason.NO_ROOM},  # a task with an object that lacks a declared frame is refused before the run
    "route": {Reason.NO_ROOM},
    "drape": {Reason.NO_ROOM},
    "press": {Reason.MISSED_GRASP},  # raised at handles only, which this skill does not grasp
    "sweep": {Reason.OFF_TARGET, Reason.TOPPLED},  # the skill goes on with the next object
}
"""Reasons that a skill's code contains, but that do not leave the skill."""


def raised(code: Any, seen: set[Any]) -> Iterator[Reason]:
    """Yield the reasons of all failures raised in a class or function and in those that it uses."""
    if code in seen:
        return
    seen.add(code)
    names = vars(sys.modules[code.__module__])
    for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(code)))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "SkillFailure":
            first = node.args[0] if node.args else None
            if isinstance(first, ast.Attribute) and isinstance(first.value, ast.Name) and first.value.id == "Reason":
                yield Reason[first.attr]
        if isinstance(node, ast.Name) and (used := names.get(node.id)) is not None:
            if (inspect.isclass(used) or inspect.isfunction(used)) and used.__module__.startswith(CODE):
                yield from raised(used, seen)


@pytest.mark.parametrize("name", registry.names("skill"))
def test_skill_lists_the_reasons_that_it_raises(name: str) -> None:
    skill = registry.lookup("skill", name)
    missing = set(raised(skill, set())) - set(skill.reasons()) - set(MOTION_REASONS) - HANDLED.get(name, set())
    assert not missing


def test_every_failed_plan_has_a_reason_of_all_motions() -> None:
    failed = {MotionPlan(status=status).reason for status in MotionStatus if status is not MotionStatus.SUCCESS}
    assert failed <= set(MOTION_REASONS)


def test_reasons_of_the_gripper_follow_from_the_facts() -> None:
    assert "missed_grasp" in registry.lookup("skill", "insert").reasons()
    assert "gripper_not_clear" in registry.lookup("skill", "push").reasons()
    assert not {"missed_grasp", "gripper_not_clear"} & set(registry.lookup("skill", "move").reasons())
