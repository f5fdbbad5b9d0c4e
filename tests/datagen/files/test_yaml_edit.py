"""Edits of YAML text: unchanged parts stay equal to the byte, and one change affects one line."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.scene_files import scene_folder, scene_names
from nimbus.datagen.files.strict_yaml import Keys, parse
from nimbus.datagen.files.yaml_edit import insert_entry, move_entry, remove_value, set_value
from nimbus.datagen.files.yaml_write import write_flow
from tests.support.shipped_tasks import MANIPULATION

TEXTS = {name: (scene_folder("tasks") / f"{name}.yaml").read_text() for name in scene_names("tasks")}


def leaves(data: Any, keys: Keys = ()) -> list[Keys]:
    if isinstance(data, dict):
        return [leaf for name, entry in data.items() for leaf in leaves(entry, (*keys, name))]
    if isinstance(data, tuple):
        return [leaf for place, entry in enumerate(data) for leaf in leaves(entry, (*keys, place))]
    return [keys]


def at(data: Any, keys: Keys) -> Any:
    for key in keys:
        data = data[key]
    return data


def changed_lines(before: str, after: str) -> list[str]:
    return [line for line in difflib.ndiff(before.splitlines(), after.splitlines()) if line[:2] in ("- ", "+ ")]


@pytest.mark.parametrize("name", TEXTS)
def test_a_task_written_back_as_it_is_stays_byte_equal(name: str):
    assert set_value(TEXTS[name], (), parse(TEXTS[name], name).data) == TEXTS[name]


PLACES = [(name, keys) for name, text in TEXTS.items() for keys in leaves(parse(text, name).data)]
VALUES = st.one_of(
    st.integers(-1000, 1000),
    st.floats(-100, 100).map(lambda value: round(value, 4)),
    st.sampled_from(["5 cm", "33 %", "a: b", "x, y", "# no", "true", "- dash", "bins[item.class]", "Übung", "", "'"]),
    st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), max_size=12),
    st.lists(st.integers(0, 9), min_size=1, max_size=3),
)


@settings(max_examples=12)
@given(place=st.sampled_from(PLACES), value=VALUES)
def test_one_change_changes_that_line_alone(place: tuple[str, Keys], value: Any):
    name, keys = place
    text = TEXTS[name]
    after = set_value(text, keys, value)
    wanted = tuple(value) if isinstance(value, list) else value
    assert at(parse(after, name).data, keys) == wanted
    lines = [(one, two) for one, two in zip(text.split("\n"), after.split("\n"), strict=True) if one != two]
    number = parse(text, name).position(keys).line
    assert lines in ([], [(text.split("\n")[number - 1], after.split("\n")[number - 1])])


@settings(max_examples=12)
@given(name=st.sampled_from(MANIPULATION), data=st.data())
def test_moving_a_step_there_and_back_is_no_change(name: str, data: st.DataObject):
    count = len(parse(TEXTS[name], name).data["steps"])
    one, other = data.draw(st.integers(0, count - 1)), data.draw(st.integers(0, count - 1))
    moved = move_entry(TEXTS[name], ("steps",), one, other)
    assert sorted(moved.splitlines()) == sorted(TEXTS[name].splitlines())
    assert move_entry(moved, ("steps",), other, one) == TEXTS[name]


@settings(max_examples=12)
@given(name=st.sampled_from(MANIPULATION), data=st.data())
def test_an_added_step_is_one_line_and_taking_it_away_leaves_nothing(name: str, data: st.DataObject):
    count = len(parse(TEXTS[name], name).data["steps"])
    index = data.draw(st.integers(0, count))
    step = data.draw(st.sampled_from(["home", {"pick": {"object": "it", "lift": "5 cm"}}, {"pick": "cubes[1]"}]))
    added = insert_entry(TEXTS[name], ("steps",), index, step)
    assert [line[:2] for line in changed_lines(TEXTS[name], added)] == ["+ "]
    assert remove_value(added, ("steps", index)) == TEXTS[name]


@pytest.mark.parametrize("name", TEXTS)
def test_a_region_comes_and_goes_without_a_trace(name: str):
    text = TEXTS[name]
    added = set_value(text, ("regions", "spot"), {"on": "table", "center": [0.4, 0.1], "size": [0.1, 0.1]})
    assert [line[:2] for line in changed_lines(text, added)][0:1] == ["+ "]
    if "regions" in parse(text, name).data:
        assert remove_value(added, ("regions", "spot")) == text


def test_a_preset_is_written_out_line_by_line():
    after = set_value("a: 1\nrandomize: medium   # much\nb: 2\n", ("randomize",), {"mass": {"factor": [0.8, 1.2]}})
    assert after == "a: 1\nrandomize:\n  mass: {factor: [0.8, 1.2]}   # much\nb: 2\n"


def test_what_another_alias_shows_is_left_alone():
    with pytest.raises(InputError, match="other parts"):
        set_value("a: &x {b: 1}\nc: *x\n", ("a", "b"), 2)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_line_breaks_stay_as_they_are(newline: str, tmp_path: Path):
    text = newline.join(["a: 1  # one", "steps:", "  - home", "b: 2", ""])
    assert set_value(text, ("b",), 3) == text.replace("b: 2", "b: 3")
    added = insert_entry(text, ("steps",), 1, "home")
    assert added == text.replace("  - home", f"  - home{newline}  - home")


@settings(max_examples=40)
@given(value=st.recursive(VALUES, lambda inner: st.dictionaries(st.text("abc: #-", min_size=1, max_size=4), inner)))
def test_what_is_written_reads_back(value: Any):
    def plain(part: Any) -> Any:
        if isinstance(part, dict):
            return {name: plain(entry) for name, entry in part.items()}
        return tuple(part) if isinstance(part, list) else part

    assert parse(f"- {write_flow(value)}\n", "value").data == (plain(value),)
