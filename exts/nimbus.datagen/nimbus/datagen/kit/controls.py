"""Renders the controls of a form with omni.ui."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import omni.ui as ui

from nimbus.datagen.ui.form import ControlData

LABEL_WIDTH = 160
ROW_HEIGHT = 24
_LINES_HEIGHT, _MOST_LINES = 18, 16
_IN_A_ROW = 3
RED = {"color": 0xFF5050E0}
"""Style of texts about problems; omni.ui's colors are ABGR."""

Act = Callable[[str, Any], None]


class Controls:
    """Draws the controls of a section; the object holds their subscriptions while the section is visible.

    Args:
        act: Called with a control's id and its new value.
    """

    def __init__(self, act: Act) -> None:
        self._act = act
        self._held: list[Any] = []

    def forget(self) -> None:
        """Stop processing events."""
        self._held.clear()

    def draw(self, controls: Sequence[ControlData]) -> None:
        """Draw the controls from top to bottom; successive buttons are side by side."""
        self._held.clear()
        buttons: list[ControlData] = []
        for control in controls:
            if control["kind"] == "button":
                buttons.append(control)
                continue
            self._draw_buttons(buttons)
            buttons = []
            _KINDS[control["kind"]](self, control)
            if control["problem"]:
                ui.Label(control["problem"], word_wrap=True, style=RED, identifier=f"{control['id']} problem")
        self._draw_buttons(buttons)

    def _draw_buttons(self, buttons: Sequence[ControlData]) -> None:
        for start in range(0, len(buttons), _IN_A_ROW):
            with ui.HStack(height=ROW_HEIGHT, spacing=4):
                for control in buttons[start : start + _IN_A_ROW]:
                    name = control["id"]
                    ui.Button(
                        control["label"],
                        clicked_fn=lambda name=name: self._act(name, None),
                        identifier=name,
                        tooltip=control["hint"],
                    )

    def _text(self, control: ControlData) -> None:
        with ui.HStack(height=ROW_HEIGHT, spacing=4):
            _label(control)
            field = ui.StringField(identifier=control["id"], tooltip=control["hint"])
        self._take(control, field, str(control["value"]), lambda model: model.get_value_as_string())

    def _lines(self, control: ControlData) -> None:
        text = str(control["value"])
        count = min(max(text.count("\n") + 2, 3), _MOST_LINES)
        ui.Label(control["label"], height=ROW_HEIGHT)
        field = ui.StringField(
            multiline=True,
            height=_LINES_HEIGHT * count,
            identifier=control["id"],
            tooltip=control["hint"],
        )
        self._take(control, field, text, lambda model: model.get_value_as_string())

    def _number(self, control: ControlData) -> None:
        least, most, step = control["limits"]
        value, name, hint = control["value"], control["id"], control["hint"]
        with ui.HStack(height=ROW_HEIGHT, spacing=4):
            _label(control)
            if isinstance(step, int):
                whole = ui.IntDrag(min=least, max=most, name=name, tooltip=hint)
                self._take(control, whole, value, lambda model: model.get_value_as_int())
            else:
                drag = ui.FloatDrag(min=least, max=most, step=step, name=name, tooltip=hint)
                self._take(control, drag, value, lambda model: model.get_value_as_float())

    def _range(self, control: ControlData) -> None:
        least, most, step = control["limits"]
        bounds = list(control["value"])
        with ui.HStack(height=ROW_HEIGHT, spacing=4):
            _label(control)
            for place, end in enumerate(("low", "high")):
                drag = ui.FloatDrag(min=least, max=most, step=step, name=f"{control['id']} {end}")
                drag.model.set_value(bounds[place])

                def take(model: Any, place: int = place) -> None:
                    changed = [model.get_value_as_float() if at == place else bounds[at] for at in (0, 1)]
                    self._act(control["id"], changed)

                edited = drag.model.subscribe_end_edit_fn(take)
                self._held.append(edited)

    def _choice(self, control: ControlData) -> None:
        options, value = control["options"], control["value"]
        with ui.HStack(height=ROW_HEIGHT, spacing=4):
            _label(control)
            index = options.index(value) if value in options else 0
            box = ui.ComboBox(index, *options, identifier=control["id"], tooltip=control["hint"])

        def take(model: Any, _: Any) -> None:
            chosen = options[model.get_item_value_model().get_value_as_int()]
            if chosen != value:
                self._act(control["id"], chosen)

        changed = box.model.subscribe_item_changed_fn(take)
        self._held.append(changed)

    def _button_row(self, control: ControlData) -> None:
        name, hint = control["id"], control["hint"]
        with ui.HStack(height=ROW_HEIGHT, spacing=4):
            for option in control["options"]:
                ui.Button(
                    option,
                    clicked_fn=lambda option=option: self._act(name, option),
                    identifier=f"{name} {option}",
                    tooltip=hint,
                )

    def _rows(self, control: ControlData) -> None:
        for number, text in enumerate(control["options"]):
            mark = "> " if number == control["value"] else "   "
            ui.Button(
                mark + text,
                clicked_fn=lambda number=number: self._act(control["id"], number),
                identifier=f"{control['id']} {number}",
                height=ROW_HEIGHT,
                alignment=ui.Alignment.LEFT_CENTER,
            )

    def _note(self, control: ControlData) -> None:
        ui.Label(control["label"], word_wrap=True, identifier=control["id"])

    def _take(self, control: ControlData, field: Any, value: Any, read: Callable[[Any], Any]) -> None:
        """Show a value, and report an edited value when the field loses focus."""
        model = field.model
        model.set_value(value)

        def left(edited: Any) -> None:
            if (now := read(edited)) != value:
                self._act(control["id"], now)

        held = model.subscribe_end_edit_fn(left)
        self._held.append(held)


def _label(control: ControlData) -> None:
    ui.Label(control["label"], width=LABEL_WIDTH, elided_text=True)


_KINDS: dict[str, Callable[[Controls, ControlData], None]] = {
    "text": Controls._text,
    "lines": Controls._lines,
    "number": Controls._number,
    "range": Controls._range,
    "choice": Controls._choice,
    "buttons": Controls._button_row,
    "rows": Controls._rows,
    "note": Controls._note,
}
