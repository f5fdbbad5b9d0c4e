"""The panel's window: draws the view-model with omni.ui, and calls it; decides nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import omni.ui as ui

from nimbus.datagen.panel.model import MOST_EPISODES, Panel

_LABEL_WIDTH = 90
_ROW_HEIGHT = 24


class PanelWindow(ui.Window):
    """A dockable window, built when it is first shown.

    Args:
        panel: What it shows.
        title: Its name, which the menu and the docking know it by.
    """

    def __init__(self, panel: Panel, *, title: str) -> None:
        super().__init__(title, dockPreference=ui.DockPreference.RIGHT_BOTTOM, width=420, height=480, visible=True)
        self._panel = panel
        self._labels: dict[str, ui.Label] = {}
        self._buttons: dict[str, ui.Button] = {}
        self._bar: ui.ProgressBar | None = None
        self._edits: list[Any] = []
        self.deferred_dock_in("Property", ui.DockPolicy.DO_NOTHING)
        self.frame.set_build_fn(self._build)
        self._stop_observing = panel.observe(self._refresh)

    def destroy(self) -> None:
        """Release everything; a second time does nothing."""
        self._stop_observing()
        self._forget()
        super().destroy()

    def _forget(self) -> None:
        self._edits.clear()
        self._labels.clear()
        self._buttons.clear()
        self._bar = None

    def _build(self) -> None:
        self._forget()
        panel = self._panel
        with ui.ScrollingFrame():
            with ui.VStack(height=0, spacing=6):
                with ui.CollapsableFrame("Task", height=0):
                    with ui.VStack(height=0, spacing=4):
                        self._text_row("Task", panel.task, panel.set_task, "A task's name, or the path of its file")
                        self._button("check", "Open and check", panel.check)
                        self._label("summary")
                with ui.CollapsableFrame("Layouts", height=0):
                    with ui.VStack(height=0, spacing=4):
                        self._number_row("Seed", panel.seed, panel.set_seed, least=0, most=2**31 - 1)
                        self._button("sample", "Show the next layout", panel.sample)
                with ui.CollapsableFrame("Run", height=0):
                    with ui.VStack(height=0, spacing=4):
                        self._number_row("Episodes", panel.episodes, panel.set_episodes, least=1, most=MOST_EPISODES)
                        self._text_row("Folder", panel.out, panel.set_out, "Empty: out/<task> where Isaac Sim started")
                        with ui.HStack(height=_ROW_HEIGHT, spacing=4):
                            self._button("run", "Run", panel.run)
                            self._button("cancel", "Cancel", panel.cancel)
                            self._button("report", "Open report", panel.open_report)
                        self._bar = ui.ProgressBar()
                        self._label("progress")
                self._label("problem")
        self._refresh()

    def _text_row(self, name: str, value: str, change: Callable[[str], None], meaning: str) -> None:
        with ui.HStack(height=_ROW_HEIGHT, spacing=4):
            ui.Label(name, width=_LABEL_WIDTH)
            field = ui.StringField(identifier=name.lower(), tooltip=meaning)
        field.model.set_value(value)
        edited = field.model.subscribe_end_edit_fn(lambda model: change(model.get_value_as_string()))
        self._edits.append(edited)

    def _number_row(self, name: str, value: int, change: Callable[[int], None], *, least: int, most: int) -> None:
        with ui.HStack(height=_ROW_HEIGHT, spacing=4):
            ui.Label(name, width=_LABEL_WIDTH)
            drag = ui.IntDrag(name=name.lower(), min=least, max=most)
        drag.model.set_value(value)
        edited = drag.model.subscribe_end_edit_fn(lambda model: change(model.get_value_as_int()))
        self._edits.append(edited)

    def _button(self, name: str, text: str, action: Callable[[], None]) -> None:
        button = ui.Button(text, clicked_fn=action, height=_ROW_HEIGHT, identifier=name)
        self._buttons[name] = button

    def _label(self, name: str) -> None:
        label = ui.Label("", word_wrap=True, identifier=name)
        self._labels[name] = label

    def _refresh(self) -> None:
        """Show what the panel knows now."""
        bar: ui.ProgressBar | None = self._bar
        if bar is None:
            return
        panel = self._panel
        enabled = {
            "check": panel.can_check,
            "sample": panel.can_sample,
            "run": panel.can_run,
            "cancel": panel.is_running,
            "report": True,
        }
        texts = {
            "summary": "\n".join(panel.summary.lines) if panel.summary else "",
            "progress": panel.progress_line,
            "problem": panel.problem,
        }
        for name, can in enabled.items():
            button: ui.Button = self._buttons[name]
            button.enabled = can
        for name, text in texts.items():
            label: ui.Label = self._labels[name]
            label.text = text
        bar.model.set_value(panel.status.share if panel.status else 0.0)
