"""Conditions that exclude each other are found; compatible ones are not reported."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from nimbus.datagen.doctor.case import Case
from nimbus.datagen.doctor.goals import check_goals
from nimbus.datagen.tasks.task import parse_task
from tests.support.task_text import TEXT

HEAD = TEXT.split("success:")[0] + "success:\n"
TAIL = "instructions:" + TEXT.split("instructions:")[1]
BESIDE = "beside: {object: 'items[0]', of: 'items[1]'}"


def found(*conditions: str) -> list[tuple[str, bool]]:
    """Return the findings about ``beside`` conditions: the field of each, and True if it is certain."""
    task = parse_task(HEAD + "".join(f"  - {condition}\n" for condition in conditions) + TAIL)
    bins = {name: SimpleNamespace(name=name, group="bins", object_class=name) for name in ("organic", "recycling")}
    assets: Any = SimpleNamespace(stage=SimpleNamespace(fixtures=bins))
    return [(one.field, one.is_certain) for one in check_goals(Case(task, assets)) if "'beside' and" in one.what]


@pytest.mark.parametrize(
    ("other", "certain"),
    [
        ("on: {object: 'items[0]', support: 'items[1]'}", True),
        ("on: {object: 'items[1]', support: 'items[0]'}", True),
        ("inside: {object: 'items[0]', container: 'items[1]'}", False),
    ],
)
def test_what_is_beside_a_thing_is_not_on_it(other: str, certain: bool) -> None:
    name = other.split(":")[0]
    assert found(BESIDE, other) == [(f"success[1].{name}", certain)]
    assert found(other, BESIDE) == [(f"success[0].{name}", certain)]


def test_a_group_means_each_of_its_objects() -> None:
    beside = "beside: {object: 'items[0]', of: organic}"
    assert found(beside, "on: {object: items, support: organic}") == [("success[1].on", True)]
    assert found("for item in items: [beside: {object: item, of: organic}]", "on: {object: items, support: organic}")


@pytest.mark.parametrize(
    "other",
    [
        "on: {object: 'items[0]', support: organic}",
        "on: {object: 'items[0]', support: recycling}",
        "not: {on: {object: 'items[0]', support: 'items[1]'}}",
        "any: [on: {object: 'items[0]', support: 'items[1]'}, gripper_clear]",
        "inside: {object: 'items[0]', container: recycling}",
    ],
)
def test_what_may_hold_together_is_left_alone(other: str) -> None:
    assert found(BESIDE, other) == []
