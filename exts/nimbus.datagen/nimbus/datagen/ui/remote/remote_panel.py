"""Panel beside a viewport, which connects an editor process and a run with the viewport of the host."""

from __future__ import annotations

import time
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
        """Open a USD stage and play its animation, of ``duration`` [s]; this returns at once.

        Raises:
            InputError: The stage cannot be opened now.
        """
        ...

    def take_error(self) -> str:
        """Return the error of opening the last stage, only once; empty if there was none."""
        ...

    def draw_markers(self, markers: MarkersData) -> None:
        """Draw regions, cameras and spots beside the stage."""
        ...

    def show_variation(self, path: str) -> None:
        """Change the open stage by a layer that is never saved; an empty path removes it."""
        ...

    @property
    def is_opening(self) -> bool:
        """True while a stage is being opened."""
        ...

    @property
    def is_live(self) -> bool:
        """True while skills move the robot in the open stage."""
        ...

    def take_order(self, order: dict[str, Any]) -> None:
        """Queue an order of the skills that move the robot in the open stage."""
        ...

    def answer_orders(self) -> list[dict[str, Any]]:
        """Execute the waiting order if the host is ready; return the answers since the last call."""
        ...

    def take_moves(self) -> list[tuple[str, Any]]:
        """Return ids and new poses of markers that the user has moved since the last call."""
        ...


class RemotePanel:
    """View model of the panel: a view renders :attr:`state` and the run, calls :meth:`act` and has no logic of its own.

    Every action returns at once; call :meth:`poll` a few times per second.

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
        self._variation = ""
        """Layer that last changed the stage in the viewport."""
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
        """Call a function after every change; return a function that stops this."""
        self._observers.append(changed)
        return lambda: self._observers.remove(changed) if changed in self._observers else None

    def set_task(self, text: str) -> None:
        """Choose the task that :meth:`open` opens."""
        self.task = text.strip()

    def open(self) -> None:
        """Open the chosen task in the editor, which is started if necessary."""
        if self.task:
            self.act("open", self.task)

    def act(self, name: str, value: Any = None) -> None:
        """Send a user's action on a control to the editor."""
        self._problem = ""
        self._editor.act(name, value)
        self._notify()

    def run(self) -> None:
        """Start a run of the saved file in a separate process."""
        self._problem = ""
        state, runs = self.state, self.runs
        if not state["path"]:
            self._problem = "no task is open; open one first"
        elif state["unsaved"]:
            self._problem = f"{state['path']}: the task is not saved; save it: a run reads the file"
        elif state["problems"]:
            self._problem = state["problems"][0]
        elif not runs.is_running:
            runs.set_task(state["path"])
            runs.run()
        self._notify()

    def poll(self) -> None:
        """Process reports of the editor, the viewport and the run; this is cheap."""
        for name, value in self._viewport.take_moves():
            self.act(name, value)
        if error := self._viewport.take_error():
            self._problem = error
            self._notify()
        if self._editor.poll():
            self._show()
            self._notify()
        elif self.state["variation"] != self._variation:
            self._show_variation()
        self._pass_orders()
        self.runs.poll()

    @property
    def is_live(self) -> bool:
        """True while skills move the robot in the open stage; call :meth:`drive` at every frame then."""
        return self._viewport.is_live

    def drive(self, seconds: float) -> None:
        """Execute orders of the skills for a part of a frame's time.

        Args:
            seconds: Time for the orders [s].
        """
        end = time.monotonic() + seconds
        while self._viewport.is_live:
            self._pass_orders()
            left = end - time.monotonic()
            if left <= 0.0 or self._viewport.is_opening or not self._editor.wait(left):
                return
            if self._editor.poll():
                self._show()
                self._notify()

    def _pass_orders(self) -> None:
        """Pass orders to the viewport, and answers to the editor."""
        for order in self._editor.take_orders():
            self._viewport.take_order(order)
        for answer in self._viewport.answer_orders():
            self._editor.answer(answer)

    def close(self) -> None:
        """Remove observers and end the editor; a run in progress continues."""
        self._observers.clear()
        self._stop_observing()
        self._editor.close()
        self.runs.close()

    def _show(self) -> None:
        stage, markers = self.state["stage"], self.state["markers"]
        if stage is not None and stage["path"] != self._stage:
            try:
                self._viewport.show_stage(Path(stage["path"]), duration=stage["duration"])
                self._stage, self._variation = stage["path"], ""
            except InputError as error:  # the next change tries again
                self._problem = str(error)
        if self.state["variation"] != self._variation:
            self._show_variation()
        if markers != self._markers:
            self._markers = markers
            self._viewport.draw_markers(markers)

    def _show_variation(self) -> None:
        """Apply the variation to the stage in the viewport once the stage is open."""
        stage = self.state["stage"]
        if self._viewport.is_opening or stage is None or stage["path"] != self._stage:
            return
        self._variation = self.state["variation"]
        self._viewport.show_variation(self._variation)

    def _notify(self) -> None:
        for observer in list(self._observers):
            observer()
