"""Window of the panel: it draws the form and the run with omni.ui and contains no logic."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import omni.ui as ui

from nimbus.datagen.kit.controls import LABEL_WIDTH, RED, ROW_HEIGHT, Controls
from nimbus.datagen.ui.form import SectionData
from nimbus.datagen.ui.remote.remote_panel import RemotePanel
from nimbus.datagen.ui.runs.run_panel import MAX_EPISODES

_OPEN_AT_FIRST = ("Task", "Steps", "Layouts", "Run")
_PICTURE_HEIGHT = 180


class PanelWindow(ui.Window):
    """Dockable window; its content is built when it is first shown.

    Args:
        panel: View-model of the window.
        title: Title; the menu and the docking find the window by it.
    """

    def __init__(self, panel: RemotePanel, *, title: str) -> None:
        super().__init__(title, dockPreference=ui.DockPreference.RIGHT_BOTTOM, width=460, height=720, visible=True)
        self._panel = panel
        self._labels: dict[str, ui.Label] = {}
        self._buttons: dict[str, ui.Button] = {}
        self._bar: ui.ProgressBar | None = None
        self._edits: list[Any] = []
        self._sections: dict[str, tuple[ui.Frame, Controls, Any]] = {}
        self._collapsed: dict[str, bool] = {}
        self._pictures: ui.Frame | None = None
        self._shown_pictures: dict[str, str] = {}
        self.deferred_dock_in("Property", ui.DockPolicy.DO_NOTHING)
        self.frame.set_build_fn(self._build)
        self._stop_observing = panel.observe(self._refresh)

    def destroy(self) -> None:
        """Release all resources; a second call has no effect."""
        self._stop_observing()
        self._forget()
        super().destroy()

    def _forget(self) -> None:
        self._edits.clear()
        self._labels.clear()
        self._buttons.clear()
        for _, controls, _ in self._sections.values():
            Controls.forget(controls)
        self._sections.clear()
        self._bar = self._pictures = None

    def _build(self) -> None:
        self._forget()
        with ui.ScrollingFrame():
            with ui.VStack(height=0, spacing=4):
                self._build_head()
                for section in self._panel.state["sections"]:
                    self._build_section(section)
                pictures = ui.Frame(height=0)
                pictures.set_build_fn(self._build_pictures)
                self._pictures = pictures
                self._folder("Run", self._build_run)
        self._refresh()

    def _build_head(self) -> None:
        panel = self._panel
        self._text_row("task", panel.task, panel.set_task, "A task's name, or the path of its file")
        self._button("open", "Open", panel.open)
        for name in ("activity", "message"):
            self._label(name)
        self._labels["problem"] = ui.Label("", word_wrap=True, identifier="problem", style=RED)

    def _build_section(self, section: SectionData) -> None:
        title = section["title"]
        controls = Controls(self._panel.act)
        frame = ui.Frame(height=0)
        self._sections[title] = frame, controls, section
        frame.set_build_fn(partial(self._draw_section, title))

    def _draw_section(self, title: str) -> None:
        _, controls, section = self._sections[title]
        self._folder(title, partial(Controls.draw, controls, section["controls"]))

    def _folder(self, title: str, draw: Callable[[], None]) -> None:
        collapsed = self._collapsed.get(title, title not in _OPEN_AT_FIRST)
        folder = ui.CollapsableFrame(title, height=0, collapsed=collapsed)
        folder.set_collapsed_changed_fn(lambda now: self._collapsed.__setitem__(title, now))
        with folder:
            with ui.VStack(height=0, spacing=3):
                draw()

    def _build_pictures(self) -> None:
        with ui.VStack(height=0, spacing=3):
            for camera, path in self._shown_pictures.items():
                ui.Label(camera, height=ROW_HEIGHT)
                ui.Image(path, height=_PICTURE_HEIGHT, identifier=f"picture {camera}")

    def _build_run(self) -> None:
        panel, runs = self._panel, self._panel.runs
        self._number_row("run seed", runs.seed, runs.set_seed, least=0, most=2**31 - 1)
        self._number_row("episodes", runs.episodes, runs.set_episodes, least=1, most=MAX_EPISODES)
        self._text_row("folder", runs.out, runs.set_out, "Empty: out/<task> where Isaac Sim started")
        with ui.HStack(height=ROW_HEIGHT, spacing=4):
            self._button("run", "Run", panel.run)
            self._button("cancel", "Cancel", runs.cancel)
            self._button("report", "Open report", runs.open_report)
        self._bar = ui.ProgressBar()
        self._label("progress")

    def _text_row(self, name: str, value: str, change: Callable[[str], None], meaning: str) -> None:
        with ui.HStack(height=ROW_HEIGHT, spacing=4):
            ui.Label(name, width=LABEL_WIDTH)
            field = ui.StringField(identifier=name, tooltip=meaning)
        field.model.set_value(value)
        edited = field.model.subscribe_end_edit_fn(lambda model: change(model.get_value_as_string()))
        self._edits.append(edited)

    def _number_row(self, name: str, value: int, change: Callable[[int], None], *, least: int, most: int) -> None:
        with ui.HStack(height=ROW_HEIGHT, spacing=4):
            ui.Label(name, width=LABEL_WIDTH)
            drag = ui.IntDrag(name=name, min=least, max=most)
        drag.model.set_value(value)
        edited = drag.model.subscribe_end_edit_fn(lambda model: change(model.get_value_as_int()))
        self._edits.append(edited)

    def _button(self, name: str, text: str, action: Callable[[], None]) -> None:
        button = ui.Button(text, clicked_fn=action, height=ROW_HEIGHT, identifier=name)
        self._buttons[name] = button

    def _label(self, name: str) -> None:
        label = ui.Label("", word_wrap=True, identifier=name)
        self._labels[name] = label

    def _refresh(self) -> None:
        """Show the state of the panel."""
        bar: ui.ProgressBar | None = self._bar
        if bar is None:
            return
        state, runs = self._panel.state, self._panel.runs
        sections = state["sections"]
        if [section["title"] for section in sections] != list(self._sections):
            self.frame.rebuild()
            return
        for section in sections:
            frame, controls, shown = self._sections[section["title"]]
            if section != shown:
                self._sections[section["title"]] = frame, controls, section
                one: ui.Frame = frame
                one.rebuild()
        pictures: ui.Frame | None = self._pictures
        if pictures is not None and state["pictures"] != self._shown_pictures:
            self._shown_pictures = dict(state["pictures"])
            pictures.rebuild()
        texts = {
            "activity": f"{state['activity']} ..." if state["activity"] else "",
            "message": state["message"],
            "problem": self._panel.problem,
            "progress": runs.progress_line,
        }
        for name, text in texts.items():
            label: ui.Label = self._labels[name]
            label.text = text
        for name, can in {"run": not runs.is_running, "cancel": runs.is_running}.items():
            button: ui.Button = self._buttons[name]
            button.enabled = can
        bar.model.set_value(runs.status.share if runs.status else 0.0)
