"""Every control of the editor changes the task, or asks for what it says; one that nobody tests fails here."""

from __future__ import annotations

import pytest
from controls_touched import ACTIONS, BY_THEMSELVES, CHANGE_THE_TASK, CHOICES, TEXTS, pattern
from started_extension import TASK, Started

from nimbus.datagen.editor.screen import Control


def touch(opened: Started, control: Control) -> None:
    """Do something to a control through its widget."""
    kit, name = opened.kit, control.id
    if control.kind == "button":
        kit.press(name)
    elif control.kind in ("text", "lines"):
        kit.edit("StringField", name, TEXTS[pattern(name)])
    elif control.kind == "choice":
        kit.choose(name, CHOICES[pattern(name)])
    elif control.kind == "number":
        kit.edit("FloatDrag", name, control.value * 0.5)
    elif control.kind == "range":
        low, high = control.value
        kit.edit("FloatDrag", f"{name} low", low * 0.5)
        assert opened.text != TASK
        kit.edit("FloatDrag", f"{name} high", high * 0.75)
    opened.look()


def by_itself(name: str) -> bool:
    return name in BY_THEMSELVES or " . " in name


def test_every_control_changes_the_task_or_asks_for_what_it_says(opened: Started):
    editor, touched = opened.channel.editor, set()
    for control in [one for section in editor.sections() for one in section.controls]:
        name = pattern(control.id)
        if by_itself(name):
            continue
        editor.act("text", TASK)
        editor.act("episode", 0)
        for choice, index in (("steps", 3), ("success", 2)):
            editor.act(choice, index)
        if name in ("steps down", "steps remove", "success remove"):
            editor.act("steps", 0)
        if name == "undo":
            editor.act("rate", "30")
        opened.look()
        opened.channel.sketch.asked.clear()
        before = opened.text
        touch(opened, control)
        asked = [entry for entry in opened.channel.sketch.asked if entry[0] != "outline"]
        if control.kind == "button" and name not in CHANGE_THE_TASK:
            assert asked == [ACTIONS[name]], name
        else:
            assert opened.text != before, name
            assert asked == [], name
        touched.add(name)
    ranges = {"randomize.light.intensity", "randomize.materials.tint"}
    assert touched == {*TEXTS, *CHOICES, *CHANGE_THE_TASK, *ACTIONS, *ranges}


def test_what_is_tested_by_itself_is_there(opened: Started):
    opened.press("steps 1")
    opened.press("success 1")
    there = {control.id for section in opened.channel.editor.sections() for control in section.controls}
    assert set(BY_THEMSELVES) <= there


def test_every_widget_belongs_to_a_control_or_to_the_window(opened: Started):
    editor = opened.channel.editor
    names = {control.id for section in editor.sections() for control in section.controls}
    own = {"task", "open", "run seed", "episodes", "folder", "run", "cancel", "report"}
    for widget in opened.kit.widgets:
        if type(widget).__name__ in ("Button", "StringField", "IntDrag", "FloatDrag", "ComboBox"):
            options = widget.played_options
            name = str(options.get("identifier") or options.get("name"))
            stem = name.removesuffix(" low").removesuffix(" high").rstrip("0123456789").rstrip()
            assert {name, stem} & (names | own), name


def test_a_control_that_is_new_has_no_entry_and_fails(opened: Started):
    with pytest.raises(KeyError):
        touch(opened, Control(id="colour", kind="text"))
