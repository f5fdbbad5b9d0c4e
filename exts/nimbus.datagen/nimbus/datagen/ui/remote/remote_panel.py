"""Panel beside a viewport: an editor in another process, its stages and markers in the viewport, and one run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from nimbus.datagen.errors import InputError
from nimbus.datagen.ui.remote.editor_process import EditorConnection
from nimbus.datagen.ui.remote.messages import EditorState, MarkersData
from nimbus.datagen.ui.runs.run_panel import RunPanel


class MarkerViewport(Protocol):
    """Viewport of the host."""

    def show_stage(self, path: Path, *, duration: float = 0.0) -> None:
        """Open a USD stage and play its animation [s]; returns at once.

        Raises:
            InputError: The stage cannot be opened now.
        """
        ...

    def take_error(self) -> str:
        """Return why the last stage could not be opened, once; empty when there was no error."""
        ...

    def draw_markers(self, markers: MarkersData) -> None:
        """Draw regions, cameras and spots beside the stage."""
        ...

    def take_moves(self) -> list[tuple[str, Any]]:
        """Return ids and new poses of markers that the user has moved since the last call."""
        ...


class RemotePanel:
    """View-model of the panel: a view renders :attr:`state` and the run, calls :meth:`act` and decides nothing.

    Every action returns at once; call :meth:`poll` some times a second.

    Args:
        editor: Connection to the editor process.
        runs: Starts and watches runs.
        viewport: Shows the stages and markers of the editor.
    """

    def __init__(self, editor: EditorConnection, runs: RunPanel, viewport: MarkerViewport) -> None:
        self._editor, self.runs, self._viewport = editor, runs, viewport
        self._observers: list[Callable[[], None]] = []
        self._stage = ""
        """Path of the stage last opened in the viewport."""
        self._markers: MarkersData | None = None
        self._problem = ""
        self.task = ""
        """Name or path of the task to open."""
        self._stop_observing = runs.observe(self._notify)

    @property
    def state(self) -> EditorState:
        """State of the editor."""
        return self._editor.state

    @property
    def problem(self) -> str:
        """Last error in one line."""
        return self._problem or self._editor.problem or self.runs.problem

    def observe(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call a function after every change; returns a function that stops this."""
        self._observers.append(changed)
        return lambda: self._observers.remove(changed) if changed in self._observers else None

    def set_task(self, text: str) -> None:
        """Choose the task that :meth:`open` opens."""
        self.task = text.strip()

    def open(self) -> None:
        """Open the chosen task in the editor, which is started if it does not run."""
        if self.task:
            self.act("open", self.task)

    def act(self, name: str, value: Any = None) -> None:
        """Send the use of a control to the editor."""
        self._problem = ""
        self._editor.act(name, value)
        self._notify()

    def run(self) -> None:
        """Start a run of the saved file, in a process of its own."""
        self._problem = ""
        state, runs = self.state, self.runs
        if not state["path"]:
            self._problem = "no task is open; open one first"
        elif state["unsaved"] or not Path(state["path"]).exists():
            self._problem = f"{state['path']}: the task is not saved; save it: a run reads the file"
        elif state["problems"]:
            self._problem = state["problems"][0]
        elif not runs.is_running:
            runs.set_task(state["path"])
            runs.run()
        self._notify()

    def poll(self) -> None:
        """Process reports of the editor, the viewport and the run; cheap."""
        for name, value in self._viewport.take_moves():
            self.act(name, value)
        if error := self._viewport.take_error():
            self._problem = error
            self._notify()
        if self._editor.poll():
            self._show()
            self._notify()
        self.runs.poll()

    def close(self) -> None:
        """Remove observers and end the editor; a run continues by itself."""
        self._observers.clear()
        self._stop_observing()
        self._editor.close()
        self.runs.close()

    def _show(self) -> None:
        stage, markers = self.state["stage"], self.state["markers"]
        if stage is not None and stage["path"] != self._stage:
            try:
                self._viewport.show_stage(Path(stage["path"]), duration=stage["duration"])
                self._stage = stage["path"]
            except InputError as error:  # the next change tries again
                self._problem = str(error)
        if markers != self._markers:
            self._markers = markers
            self._viewport.draw_markers(markers)

    def _notify(self) -> None:
        for observer in list(self._observers):
            observer()
