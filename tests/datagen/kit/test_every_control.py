"""Kit's window renders each kind of control, and reports its use."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nimbus.datagen.ui.form import Control
from tests.support.desks import TASK
from tests.support.started_extension import Started

USES: dict[str, tuple[Callable[[Started], None], str]] = {
    "text": (lambda opened: opened.edit("StringField", "rate", "30"), "rate: 30"),
    "lines": (lambda opened: opened.edit("StringField", "instructions", "Tidy up."), "Tidy up."),
    "file": (lambda opened: opened.edit("StringField", "text", TASK.replace("panda", "ur5")), "robot: ur5"),
    "choice": (lambda opened: opened.choose("robot", "ur5"), "robot: ur5"),
    "number": (lambda opened: opened.edit("FloatDrag", "randomize.materials.tint", 10.0), "tint: 10 %"),
    "low": (lambda opened: opened.edit("FloatDrag", "randomize.light.intensity low", 30.0), "[30 %, 120 %]"),
    "high": (lambda opened: opened.edit("FloatDrag", "randomize.light.intensity high", 90.0), "[60 %, 90 %]"),
    "button": (lambda opened: opened.press("add a region"), "region: {on: table"),
    "buttons": (lambda opened: opened.press("steps move down"), "steps:\n  - home\n"),
}
"""Use of each kind of control, and a text that the file contains afterwards."""


@pytest.mark.parametrize(("use", "text"), USES.values(), ids=USES)
def test_use_of_a_control_changes_the_task(opened: Started, use: Callable[[Started], None], text: str):
    use(opened)
    assert text in opened.text
    assert opened.label("message") == ""


def test_every_control_has_widgets_and_no_others(opened: Started):
    opened.press("steps 1")
    own = {"task", "open", "run seed", "episodes", "folder", "run", "cancel", "report"}
    expected = own | {
        name for section in opened.channel.editor.sections() for one in section.controls for name in names(one)
    }
    kinds = ("Button", "StringField", "IntDrag", "FloatDrag", "ComboBox")
    widgets = [widget.played_options for widget in opened.kit.widgets if type(widget).__name__ in kinds]
    assert {str(options.get("identifier") or options.get("name")) for options in widgets} == expected


def names(control: Control) -> list[str]:
    """Return the identifiers of a control's widgets."""
    if control.kind == "note":
        return []
    if control.kind == "range":
        return [f"{control.id} low", f"{control.id} high"]
    if control.kind == "rows":
        return [f"{control.id} {number}" for number in range(len(control.options))]
    return [f"{control.id} {option}" for option in control.options] if control.kind == "buttons" else [control.id]
