"""Rendering of the task editor's form with viser.

Elements of unchanged controls are kept in the page, so that typing and scrolling are not interrupted when other
controls change.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nimbus.datagen.errors import visible
from nimbus.datagen.ui.browser.markdown import escape

if TYPE_CHECKING:
    from nimbus.datagen.ui.form import Control, FormSection

Use = Callable[[str, Any], None]
"""Function called with a control's id and its new value."""

_TYPED = "text", "lines", "number", "range"
"""Kinds of fields that the user types into; they are not updated during typing."""
_INDENT = "    "
"""Step of the indentation of rows."""


class BrowserForm:
    """Form whose sections are folders of one container, or have separate containers.

    Args:
        gui: ``viser.ViserServer.gui``.
        container: Container of the folders.
        places: Containers of the sections that have separate ones, by title.
        use: Called when a control is used.
    """

    def __init__(self, gui: Any, container: Any, *, places: Mapping[str, Any], use: Use) -> None:
        self._gui, self._container, self._use = gui, container, use
        self._lists = {title: ControlList(gui, place, use) for title, place in places.items()}

    def show(self, sections: Sequence[FormSection], *, used: str = "") -> None:
        """Show the sections; ``used`` is the id of the control that is being used."""
        for title in self._lists.keys() - {section.title for section in sections}:  # sections of a task of another kind
            self._lists[title].show(())
        for number, section in enumerate(sections, 1):
            if section.title not in self._lists:
                with self._container:
                    # The order places folders after all controls of the container itself.
                    folder = self._gui.add_folder(section.title, expand_by_default=False, order=1000.0 + number)
                self._lists[section.title] = ControlList(self._gui, folder, self._use)
            self._lists[section.title].show(section.controls, used=used)


class ControlList:
    """Controls in one container.

    Args:
        gui: ``viser.ViserServer.gui``.
        container: Container of the elements.
        use: Called when a control is used.
    """

    def __init__(self, gui: Any, container: Any, use: Use) -> None:
        self._gui, self._container, self._use = gui, container, use
        self._shown: dict[str, Control] = {}
        self._handles: dict[str, list[Any]] = {}
        """Elements of each control; the first one has the value."""
        self._problems: dict[str, tuple[str, Any]] = {}
        """Error message of each invalid control, with its element."""
        self._updating_thread = 0

    def show(self, controls: Sequence[Control], *, used: str = "") -> None:
        """Show the controls in this order, and remove all others."""
        # Viser reports values that are set here as changes, in the same thread.
        self._updating_thread = threading.get_ident()
        try:
            for name in self._shown.keys() - {control.id for control in controls}:
                self._remove(name)
            with self._container:
                for order, control in enumerate(controls):
                    self._show(control, float(order), is_used=control.id == used)
        finally:
            self._updating_thread = 0

    def _show(self, control: Control, order: float, *, is_used: bool) -> None:
        shown = self._shown.get(control.id)
        if shown is not None and _is_same_element(control, shown, is_used=is_used):
            if not (is_used and control.kind in _TYPED):
                self._update(control)
            for handle in self._handles[control.id]:
                if int(handle.order) != int(order):
                    handle.order = order + handle.order % 1
        else:
            if shown is not None:
                self._remove(control.id)
            self._handles[control.id] = _ADD[control.kind](self._gui, control, order, self._report)
        self._shown[control.id] = control
        self._show_problem(control, order)

    def _show_problem(self, control: Control, order: float) -> None:
        text, handle = self._problems.pop(control.id, ("", None))
        if handle is not None and text != control.problem:
            handle.remove()
            handle = None
        if control.problem:
            lines = "  \n".join(f"**{escape(line)}**" for line in control.problem.splitlines())
            handle = handle or self._gui.add_markdown(lines, order=order + 0.5)
            self._problems[control.id] = control.problem, handle

    def _remove(self, name: str) -> None:
        _, problem = self._problems.pop(name, ("", None))
        for handle in (*self._handles.pop(name), *([problem] if problem else [])):
            handle.remove()
        del self._shown[name]

    def _update(self, control: Control) -> None:
        """Set the value, unless the user has just typed it or is typing another one."""
        handle, *others = self._handles[control.id]
        value = control.options[control.value] if control.kind == "rows" else control.value
        is_changed = control.value != self._shown[control.id].value
        if control.kind in ("choice", "rows") or (control.kind in _TYPED and is_changed):
            handle.value = tuple(value) if control.kind == "range" else value
        if control.kind == "rows":
            others[0].content = _list_text(control)

    def _report(self, name: str, value: Any) -> None:
        if threading.get_ident() != self._updating_thread:
            self._use(name, value)


def _is_same_element(control: Control, shown: Control, *, is_used: bool) -> bool:
    """Return True if the element of ``shown`` can show a control; new limits do not matter while it is in use."""
    limits = shown.limits if is_used else control.limits
    return replace(control, value=shown.value, problem=shown.problem, limits=limits) == shown


def _add_text(gui: Any, control: Control, order: float, use: Use) -> list[Any]:
    hint, is_long = control.hint or None, control.kind == "lines"
    text = gui.add_text(control.label, str(control.value), multiline=is_long, hint=hint, order=order)
    if not control.confirm:
        text.on_update(lambda event: use(control.id, event.target.value))
        return [text]
    confirm = gui.add_button(control.confirm, color="gray", order=order + 0.25)
    confirm.on_click(lambda _: use(control.id, text.value))
    return [text, confirm]


def _add_number(gui: Any, control: Control, order: float, use: Use) -> list[Any]:
    least, most, step = control.limits
    options = {"min": least, "max": most, "step": step, "hint": control.hint or None, "order": order}
    if isinstance(step, int):
        number = gui.add_number(control.label, control.value, **options)
    else:
        number = gui.add_slider(control.label, initial_value=control.value, **options)
    number.on_update(lambda event: use(control.id, event.target.value))
    return [number]


def _add_range(gui: Any, control: Control, order: float, use: Use) -> list[Any]:
    options = {"step": control.limits[2], "hint": control.hint or None, "order": order}
    pair = gui.add_vector2(control.label, tuple(control.value), **options)
    pair.on_update(lambda event: use(control.id, list(event.target.value)))
    return [pair]


def _add_choice(gui: Any, control: Control, order: float, use: Use) -> list[Any]:
    choice = gui.add_dropdown(
        control.label, control.options, initial_value=control.value, hint=control.hint or None, order=order
    )
    choice.on_update(lambda event: use(control.id, event.target.value))
    return [choice]


def _add_button(gui: Any, control: Control, order: float, use: Use) -> list[Any]:
    button = gui.add_button(control.label, hint=control.hint or None, color="gray", order=order)
    button.on_click(lambda _: use(control.id, None))
    return [button]


def _add_buttons(gui: Any, control: Control, order: float, use: Use) -> list[Any]:
    group = gui.add_button_group(control.label, control.options, hint=control.hint or None, order=order)
    group.on_click(lambda event: use(control.id, event.target.value))
    return [group]


def _add_rows(gui: Any, control: Control, order: float, use: Use) -> list[Any]:
    options, selected = control.options, control.options[control.value]
    select = gui.add_dropdown(control.label, options, initial_value=selected, order=order)
    select.on_update(lambda event: use(control.id, options.index(event.target.value)))
    return [select, gui.add_markdown(_list_text(control), order=order + 0.25)]


def _add_note(gui: Any, control: Control, order: float, use: Use) -> list[Any]:
    parts = [escape(part) for part in control.label.split("``")]
    # Text between double backticks becomes code. A backtick inside it would end the code and expose the rest to
    # Markdown.
    parts[1::2] = [f"`{visible(code.replace('`', ' '))}`" for code in control.label.split("``")[1::2]]
    return [gui.add_markdown("".join(parts).replace("\n", "  \n"), order=order)]


_ADD: dict[str, Callable[[Any, Control, float, Use], list[Any]]] = {
    "text": _add_text,
    "lines": _add_text,
    "number": _add_number,
    "range": _add_range,
    "choice": _add_choice,
    "button": _add_button,
    "buttons": _add_buttons,
    "rows": _add_rows,
    "note": _add_note,
}


def _list_text(control: Control) -> str:
    """Format rows as Markdown, the selected one in bold; the dot is escaped to prevent Markdown's own numbering."""
    lines = []
    for index, option in enumerate(control.options):
        number, _, text = option.partition(". ")
        depth = (len(text) - len(text.lstrip())) // len(_INDENT)
        line = f"{number}\\. {'&emsp;' * depth}{escape(text.strip())}"
        lines.append(f"**{line}**" if index == control.value else line)
    return "  \n".join(lines)
