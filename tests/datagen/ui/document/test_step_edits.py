"""Steps are moved, put into loops and added, without any other change of the task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.scene_files import scene_folder
from nimbus.datagen.files.strict_yaml import Keys
from nimbus.datagen.ui.document import step_edits
from nimbus.datagen.ui.document.declarations import StepRow, step_rows
from nimbus.datagen.ui.document.draft import TaskDraft
from nimbus.datagen.ui.document.fields import named
from tests.support.shipped_tasks import MANIPULATION

SORT = (scene_folder("tasks") / "sort_trash.yaml").read_text()


@pytest.fixture
def draft(tmp_path: Path) -> TaskDraft:
    """Return a draft whose steps are a loop with ``pick`` and ``place``, and ``home``."""
    return TaskDraft("sort_trash", folder=tmp_path)


def rows(draft: TaskDraft) -> list[StepRow]:
    return step_rows(draft.value("steps"))


def test_an_entry_goes_up_and_down_within_its_own_list(draft: TaskDraft):
    pick = rows(draft)[1].keys
    below = step_edits.reorder(draft, pick, "down")
    assert below and below == (*pick[:-1], 1)
    assert [row.name for row in rows(draft)][1:3] == ["place", "pick"]
    assert step_edits.reorder(draft, below, "down") == below
    assert step_edits.reorder(draft, below, "up") == pick
    assert step_edits.reorder(draft, pick, "up") == pick
    assert draft.text == SORT


def test_the_last_one_of_a_list_stays(draft: TaskDraft):
    assert step_edits.reorder(draft, ("steps", 1), "remove") is None
    with pytest.raises(InputError, match="the only entry cannot be removed"):
        step_edits.reorder(draft, ("steps", 0), "remove")
    assert [row.name for row in rows(draft)] == ["for item in items", "pick", "place"]


def test_inside_a_loop_the_group_is_called_by_the_name_of_one(draft: TaskDraft):
    added = step_edits.add_after(draft, ("steps", 1), step_edits.typed_entry("pick", {"object": "items", "lift": ""}))
    assert draft.value(*added) == {"pick": "items"}
    step_edits.wrap(draft, added, "items")
    assert draft.value(*added) == {"for item in items": ({"pick": "item"},)}
    assert draft.problems() == []


def test_inside_a_loop_expressions_are_about_one_but_numbered_ones_stay(draft: TaskDraft):
    added = step_edits.add_after(draft, ("steps", 1), {"place": {"object": "items", "in": "bins[items.class]"}})
    step_edits.wrap(draft, added, "items")
    (place,) = draft.value(*added)["for item in items"]
    assert place == {"place": {"object": "item", "in": "bins[item.class]"}}
    draft.set(added, {"pick": "items[0]"})
    step_edits.wrap(draft, added, "items")
    assert draft.value(*added) == {"for item in items": ({"pick": "items[0]"},)}


@pytest.mark.parametrize("said", [None, "nothing"])
def test_a_list_that_is_missing_begins_with_what_is_added(draft: TaskDraft, said: Any):
    draft.remove(("success",))
    if said:
        draft.set(("success",), said)
    assert step_edits.add_after(draft, ("success", -1), "gripper_clear") == ("success", 0)
    assert draft.value("success") == ("gripper_clear",)


def test_what_is_typed_into_a_parameter_must_be_yaml():
    with pytest.raises(InputError, match="malformed"):
        step_edits.typed_entry("pick", {"object": "[items"})


def within(rows: list[StepRow], keys: Keys) -> list[StepRow]:
    """Return the entry at a position, and those below it."""
    return [row for row in rows if row.keys[: len(keys)] == keys]


@settings(max_examples=30)
@given(name=st.sampled_from(MANIPULATION), data=st.data())
def test_a_loop_is_one_more_row_and_those_inside_are_one_deeper(name: str, data: st.DataObject):
    draft = TaskDraft(name)
    text, before = draft.text, rows(draft)
    keys = data.draw(st.sampled_from(before)).keys
    group = data.draw(st.sampled_from(list(named(draft, "objects"))))
    step_edits.wrap(draft, keys, group)
    old, (loop, *new) = within(before, keys), within(rows(draft), keys)
    assert loop.name.endswith(f" in {group}")
    assert [(row.depth - 1, row.name) for row in new] == [(row.depth, row.name) for row in old]
    assert [row for row in rows(draft) if row not in (loop, *new)] == [row for row in before if row not in old]
    draft.undo()
    assert draft.text == text
