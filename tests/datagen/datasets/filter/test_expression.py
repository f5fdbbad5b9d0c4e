"""Conditions are parsed by Nimbus's own rules, and never executed as Python."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nimbus.datagen.datasets.filter.expression import Condition
from nimbus.datagen.errors import InputError

ROW: dict[str, Any] = {
    "success": True,
    "length": 60,
    "seed": 3,
    "reason": "none",
    "task": "open the red drawer",
    "kinds": ["can", "box"],
    "score": None,
}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("success", True),
        ("not success", False),
        ("success and length > 50", True),
        ("success and length > 50 and seed == 4", False),
        ("length < 50 or 'red' in task", True),
        ("reason in ['none', 'slipped']", True),
        ("reason not in ('none', 'slipped')", False),
        ("'can' in kinds", True),
        ("50 <= length < 60", False),
        ("length / 15 == 4", True),
        ("length % 7 == 4 and -seed < 0", True),
        ("(length + 2) * 2 - 4 == 120", True),
        ("score > 1", False),
        ("score > 1 or success", True),
    ],
)
def test_a_condition_holds_or_not(text: str, holds: bool):
    assert Condition(text)(ROW) is holds


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "success.__class__",
        "kinds[0] == 'can'",
        "[x for x in kinds]",
        "lambda: 1",
        "length ** 99999999",
        "f'{length}'",
        "length > 50 if success else True",
        "(length := 5)",
        "success &",
        "",
        "1" * 2000,
        "not " * 240 + "success and " * 4,
        "(" * 300 + "success" + ")" * 300,
        "None",
        "b'x' == task",
        "1j == length",
        "success; success",
    ],
)
def test_what_is_no_condition_is_one_line(text: str):
    with pytest.raises(InputError, match="is not a condition"):
        Condition(text)


@given(st.text(max_size=60))
def test_any_text_is_a_condition_or_one_line(text: str):
    try:
        condition = Condition(text)
        condition.check(ROW)
        condition(ROW)
    except InputError as error:
        assert str(error).startswith("--where: ")


def test_an_unknown_column_is_answered_with_the_nearest():
    condition = Condition("succes and length > 50")
    with pytest.raises(InputError, match="no column 'succes'; did you mean 'success'"):
        condition.check(ROW)


@pytest.mark.parametrize("text", ["task > 5", "length + task > 3", "length / 0 > 1", "5 in length"])
def test_values_that_do_not_compare_are_one_line(text: str):
    with pytest.raises(InputError, match="the columns are"):
        Condition(text)(ROW)


def test_texts_are_not_multiplied_into_the_memory():
    with pytest.raises(InputError, match="is not a number"):
        Condition("task * 999999999 == task")(ROW)


def test_what_does_not_compare_is_told_with_what_an_episode_lacks():
    with pytest.raises(InputError, match="'speed': None"):
        Condition("length > 'a' or speed > 1")({"length": 60})
