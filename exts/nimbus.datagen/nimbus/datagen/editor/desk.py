"""What a panel beside a viewport does: an editor, its stages and marks in the viewport, and one run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from nimbus.datagen.editor.link import EditorLink
from nimbus.datagen.errors import InputError
from nimbus.datagen.panel.model import Panel, TaskSummary


class Viewport(Protocol):
    """Where a scene is seen."""

    def show_stage(self, path: Path, *, duration: float = 0.0) -> None:
        """Open a USD stage and play its animation; returns at once.

        Raises:
            InputError: It cannot be opened now.
        """
        ...

    def complaint(self) -> str:
        """Why the last stage could not be opened after all, told once; empty when nothing is wrong."""
        ...

    def mark(self, marks: dict[str, Any]) -> None:
        """Draw regions, cameras and spots beside the stage."""
        ...

    def moved(self) -> list[tuple[str, Any]]:
        """Ids and new places of what the user has moved and let go since the last look."""
        ...


class Desk:
    """A view draws :attr:`screen` and the panel's run, calls :meth:`act` and decides nothing.

    Every action returns at once; call :meth:`poll` some times a second.

    Args:
        link: To the editor.
        panel: Runs.
        viewport: Shows what the editor makes.
    """

    def __init__(self, link: EditorLink, panel: Panel, viewport: Viewport) -> None:
        self._link, self.panel, self._viewport = link, panel, viewport
        self._observers: list[Callable[[], None]] = []
        self._stage = ""
        """The last one that the viewport was given."""
        self._marks: Any = None
        self._problem = ""
        self.task = ""
        """Name or path of the task to open."""
        self._stop_observing = panel.observe(self._changed)

    @property
    def screen(self) -> dict[str, Any]:
        """What the editor shows."""
        return self._link.screen

    @property
    def problem(self) -> str:
        """What went wrong last, in one line."""
        return self._problem or self._link.problem or self.panel.problem

    def observe(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call a function after every change; returns what ends it."""
        self._observers.append(changed)
        return lambda: self._observers.remove(changed) if changed in self._observers else None

    def set_task(self, text: str) -> None:
        """Which task is to be opened."""
        self.task = text.strip()

    def open(self) -> None:
        """Open it in the editor, which starts where it does not run."""
        if self.task:
            self.act("open", self.task)

    def act(self, name: str, value: Any = None) -> None:
        """What was done to a control of the editor."""
        self._problem = ""
        self._link.act(name, value)
        self._changed()

    def run(self) -> None:
        """Start a run of the file as it is saved, in a process of its own."""
        self._problem = ""
        screen, panel = self.screen, self.panel
        if not screen["path"]:
            self._problem = "no task is open; open one first"
        elif screen["unsaved"] or not Path(screen["path"]).exists():
            self._problem = f"{screen['path']}: the task is not saved; save it: a run reads the file"
        elif screen["problems"]:
            self._problem = screen["problems"][0]
        elif not panel.is_running:
            panel.set_task(screen["path"])
            panel.summary = TaskSummary(name=Path(screen["path"]).stem, lines=())
            panel.run()
        self._changed()

    def poll(self) -> None:
        """See what the editor, the viewport and the run say; cheap."""
        for name, value in self._viewport.moved():
            self.act(name, value)
        if complaint := self._viewport.complaint():
            self._problem = complaint
            self._changed()
        if self._link.poll():
            self._show()
            self._changed()
        self.panel.poll()

    def close(self) -> None:
        """Forget observers and end the editor; a run goes on by itself."""
        self._observers.clear()
        self._stop_observing()
        self._link.close()
        self.panel.close()

    def _show(self) -> None:
        screen = self.screen
        stage, marks = screen["stage"], screen["marks"]
        if stage is not None and stage["path"] != self._stage:
            try:
                self._viewport.show_stage(Path(stage["path"]), duration=stage["duration"])
                self._stage = stage["path"]
            except InputError as error:  # the next change tries again
                self._problem = str(error)
        if marks != self._marks:
            self._marks = marks
            self._viewport.mark(marks)

    def _changed(self) -> None:
        for observer in list(self._observers):
            observer()
