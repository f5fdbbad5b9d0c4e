"""Form of a task editor: sections of controls, which a host renders; it reports the actions of the user.

This module needs only Python's standard library, because Kit imports it, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict

Kind = Literal["text", "lines", "choice", "number", "range", "button", "buttons", "rows", "note"]


class ControlData(TypedDict):
    """Plain data of a control."""

    id: str
    kind: Kind
    label: str
    value: Any
    options: list[str]
    hint: str
    limits: list[float]
    problem: str
    confirm: str


class SectionData(TypedDict):
    """Plain data of a section."""

    title: str
    controls: list[ControlData]


@dataclass(frozen=True, kw_only=True)
class Control:
    """Element of a form: text, a field, a choice or a button."""

    id: str
    """Keys of the field in the task file, ``regions.start.center``, or the name of an action."""
    kind: Kind
    label: str = ""
    value: Any = None
    """Value: text, a number, ``[low, high]`` of a range, or the index of the selected row."""
    options: tuple[str, ...] = ()
    """Choices, rows, or labels of buttons side by side."""
    hint: str = ""
    limits: tuple[float, float, float] = (0.0, 1.0, 0.01)
    """Smallest value, largest value and step of a number or range; an integer step for whole numbers."""
    problem: str = ""
    """Error message about the field."""
    confirm: str = ""
    """Label of the button that submits the text, for a host that reports each keystroke; empty for no button."""
    act: Callable[[Any], object] = field(default=lambda _: None, repr=False, compare=False)
    """Called with the new value: the chosen option of ``buttons``, or None for a button."""

    def to_dict(self) -> ControlData:
        """Convert to plain data for the host."""
        return {
            "id": self.id,
            "kind": self.kind,
            "label": self.label,
            "value": self.value,
            "options": list(self.options),
            "hint": self.hint,
            "limits": list(self.limits),
            "problem": self.problem,
            "confirm": self.confirm,
        }


@dataclass(frozen=True, kw_only=True)
class FormSection:
    """Folder of controls."""

    title: str
    controls: tuple[Control, ...]

    def to_dict(self) -> SectionData:
        """Convert to plain data for the host."""
        return {"title": self.title, "controls": [control.to_dict() for control in self.controls]}


def button(name: str, label: str, act: Callable[[], object], *, hint: str = "") -> Control:
    """Make a button.

    Args:
        name: Id.
        label: Text on the button.
        act: Called without arguments when it is pressed.
        hint: Tooltip.
    """
    return Control(id=name, kind="button", label=label, hint=hint, act=lambda _: act())


def buttons(name: str, label: str, actions: Mapping[str, Callable[[], object]], *, hint: str = "") -> Control:
    """Make a row of buttons.

    Args:
        name: Id.
        label: Text beside the row.
        actions: Called without arguments, by the text on the button.
        hint: Tooltip.
    """
    return Control(
        id=name,
        kind="buttons",
        label=label,
        options=tuple(actions),
        hint=hint,
        act=lambda option: actions[option]() if option in actions else None,
    )
