"""Steps and conditions are selected, moved, added and changed in their lists."""

from __future__ import annotations

from started_extension import Started


def test_steps_are_selected_moved_added_and_changed_in_the_list(opened: Started):
    opened.press("steps 3")
    opened.press("steps up")
    assert opened.text.index("- home") < opened.text.index("for item in items")
    opened.press("steps down")
    opened.press("steps 1")
    opened.edit("StringField", "steps . lift", "12 cm")
    opened.press("steps change")
    assert "lift: 12 cm" in opened.text
    opened.press("steps 3")
    opened.choose("steps skill", "wait")
    opened.edit("StringField", "steps . time", "2 s")
    opened.press("steps add")
    assert opened.text.count("wait") == 1
    buttons = [widget.text for widget in opened.kit.widgets if type(widget).__name__ == "Button"]
    assert "> 5. wait: time 2 s" in buttons


def test_conditions_have_such_a_list_too(opened: Started):
    opened.press("success 2")
    opened.press("success up")
    assert opened.text.index("gripper_clear") < opened.text.index("inside")
    opened.press("success down")
    opened.choose("success predicate", "nothing_on_floor")
    opened.press("success change")
    assert "gripper_clear" not in opened.text and "nothing_on_floor" in opened.text
