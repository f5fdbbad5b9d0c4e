"""Live view of a run in the terminal, or one line per attempt without a terminal."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.live import Live
from rich.text import Text

from nimbus.datagen.errors import InputError
from nimbus.datagen.stages import Stored
from nimbus.runner.monitor.dashboard_view import duration, view
from nimbus.runner.monitor.progress import Progress, line
from nimbus.runner.monitor.status import FILE_NAME, Status, read_status
from nimbus.runner.system.console import TerminalConsole, TerminalOutput

LOADING = "loading libraries, scene and robot"
_SILENCE = 3.0
"""Time after which a plain run prints its activity [s]; most errors in a task are reported earlier."""


class Dashboard:
    """Live display of a run's progress; a context manager.

    Args:
        progress: Progress to show; the dashboard adds each result to it.
        console: Output; standard output by default.
    """

    def __init__(self, progress: Progress, *, console: TerminalOutput | None = None) -> None:
        self.progress = progress
        self.console = console or TerminalOutput()
        self._live = (
            Live(get_renderable=self._render, console=self.console, refresh_per_second=4)
            if self.console.is_terminal
            else None
        )

    def __enter__(self) -> Dashboard:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()

    def note(self, text: str) -> None:
        """Show the run's activity, for example ``compiling kernels (10-20 s, once)``."""
        self.progress.activity(text)
        if not self._live:
            self._line(text)

    def add(self, stored: Stored) -> None:
        """Count and show the result of an attempt."""
        self.progress.add(stored)
        if not self._live:
            self._line(line(stored, self.progress.status))

    def _line(self, text: str) -> None:
        self.console.say(text)

    def _render(self) -> RenderableType:
        status = self.progress.status
        return view(status, now=time.time() if status.state == "running" else None)


class StatusDashboard:
    """Shows the run of another process from its status file; use as a context manager.

    Args:
        folder: The dataset's folder.
        console: Output; standard output by default.
    """

    def __init__(self, folder: Path, *, console: TerminalOutput | None = None) -> None:
        self._folder = folder
        self._console = console or TerminalOutput()
        self._status: Status | None = None
        self._before = _stamp(folder)
        self._begin = time.monotonic()
        self._printed = -1
        self._pid = 0
        self._live = (
            Live(get_renderable=self._render, console=self._console, refresh_per_second=4)
            if self._console.is_terminal
            else None
        )

    @property
    def stored(self) -> int:
        """Number of requested episodes that are stored."""
        return self._status.already_stored + self._status.stored if self._status else 0

    def look(self) -> int:
        """Read and show the status; return the number of settled episodes, or -1 while unknown."""
        if (stamp := _stamp(self._folder)) != self._before:
            self._before = stamp
            with suppress(InputError):
                self._status = read_status(self._folder) or self._status
        if not self._live:
            self._print_events()
        return self._status.settled if self._status else -1

    def _print_events(self) -> None:
        status = self._status
        if status is None:
            if self._printed < 0 and time.monotonic() - self._begin > _SILENCE:
                self._printed = 0
                self._line(LOADING)
            return
        if status.pid != self._pid:  # a new supervisor counts its events from 1 again
            self._pid, self._printed = status.pid, 0
        for event in status.events:
            if event.number > self._printed:
                self._printed = event.number
                if event.kind != "role":  # changes of roles are shown only by the dashboard and the status file
                    self._line(event.text)

    def _line(self, text: str) -> None:
        self._console.say(text)

    def _render(self) -> RenderableType:
        if self._status is None:
            seconds = duration(time.monotonic() - self._begin)
            return Text(f"{LOADING}  {seconds}; then the episodes", style="dim italic")
        return view(self._status, now=time.time() if self._status.state == "running" else None)

    def __enter__(self) -> StatusDashboard:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.look()
        if self._live:
            self._live.stop()


def _stamp(folder: Path) -> int:
    try:
        return (folder / FILE_NAME).stat().st_mtime_ns
    except OSError:
        return 0


def loading() -> AbstractContextManager[Any]:
    """Show a spinner in a terminal while libraries and scene are loaded; elsewhere print nothing."""
    console = TerminalConsole(stderr=True)
    return console.status("loading") if console.is_terminal else nullcontext()
