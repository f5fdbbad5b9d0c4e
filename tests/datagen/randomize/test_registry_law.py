"""Laws of all randomizers; a new one is tested automatically."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from nimbus.datagen import registry
from tests.support.drawn_layouts import NAMES, drawn


def values(*names: str) -> dict[str, Any]:
    physical, visual = drawn(*names)
    return physical.drawn | visual.drawn


def test_there_are_at_least_twelve_kinds():
    assert len(NAMES) >= 12


@pytest.mark.parametrize("name", NAMES)
def test_each_kind_changes_the_layout_and_tells_what_it_drew(name: str):
    without, found = drawn(), drawn(name)
    assert found != without
    assert values(name)[name] and json.loads(json.dumps(values(name)[name])) == values(name)[name]


@pytest.mark.parametrize("name", NAMES)
def test_adding_a_kind_moves_no_other_draw(name: str):
    others = tuple(other for other in NAMES if other != name)
    few, all_of_them = values(*others), values(*NAMES)
    about = {item.name for item in drawn(*others)[0].objects}  # a randomizer that adds objects adds draws for them
    for kind, told in few.items():
        if kind == name:
            continue
        again = all_of_them[kind]
        for thing, value in told.items():
            if thing in about or not thing.startswith("distractors_"):
                assert again[thing] == value, f"{kind}: {thing}"


@pytest.mark.parametrize("name", NAMES)
def test_other_episodes_draw_other_values(name: str):
    assert (
        len(
            {
                json.dumps((drawn(name, index=index)[0].drawn | drawn(name, index=index)[1].drawn)[name])
                for index in range(4)
            }
        )
        > 1
    )


@pytest.mark.parametrize("name", NAMES)
def test_each_field_of_each_kind_says_what_it_is(name: str):
    for field, info in registry.lookup("randomizer", name).model_fields.items():
        assert info.description, f"{name}.{field}"


def test_a_layout_without_randomizers_is_told_as_it_always_was():
    physical, visual = drawn()
    assert set(physical.drawn) == {"objects"} and set(visual.drawn) == {"language"}
    assert physical.robot == dataclasses.replace(physical).robot == type(physical.robot)()
