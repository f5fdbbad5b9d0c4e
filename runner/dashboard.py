"""A live view of a run in the terminal, or one plain line an attempt where there is no terminal."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from nimbus.datagen.errors import InputError
from nimbus.datagen.stages import Stored
from nimbus.runner.progress import FILE_NAME, STAGES, Progress, Status, line, read_status


class Dashboard:
    """Shows a run's progress; use as a context manager.

    Args:
        progress: What is shown; the dashboard adds each result to it.
        console: Where it is shown; standard output by default.
    """

    def __init__(self, progress: Progress, *, console: Console | None = None) -> None:
        self.progress = progress
        self.console = console or Console()
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
        """Say what the run is doing now, for example ``compiling kernels (10-20 s, once)``."""
        self.progress.activity(text)
        if not self._live:
            self._line(text)

    def add(self, stored: Stored) -> None:
        """Count and show what became of an attempt."""
        self.progress.add(stored)
        if not self._live:
            self._line(line(stored, self.progress.status))

    def _line(self, text: str) -> None:
        self.console.print(text, soft_wrap=True, markup=False, highlight=False)

    def _render(self) -> RenderableType:
        status = self.progress.status
        return view(status, now=time.time() if status.state == "running" else None)


class Watcher:
    """Shows the run of another process from its status file; use as a context manager.

    Args:
        folder: The dataset's folder.
        console: Where it is shown; standard output by default.
    """

    def __init__(self, folder: Path, *, console: Console | None = None) -> None:
        self._folder = folder
        self._console = console or Console()
        self._status: Status | None = None
        self._before = _stamp(folder)
        self._told = 0
        self._pid = 0
        self._live = (
            Live(get_renderable=self._render, console=self._console, refresh_per_second=4)
            if self._console.is_terminal
            else None
        )

    @property
    def stored(self) -> int:
        """Episodes that are stored, of those asked for."""
        return self._status.already_stored + self._status.stored if self._status else 0

    def look(self) -> int:
        """Read the status and show it; how many episodes are settled, -1 while nothing is known."""
        if (stamp := _stamp(self._folder)) != self._before:
            self._before = stamp
            with suppress(InputError):
                self._status = read_status(self._folder) or self._status
            self._tell()
        return self._status.settled if self._status else -1

    def _tell(self) -> None:
        status = self._status
        if status is None or self._live:
            return
        if status.pid != self._pid:  # another supervisor counts its events anew
            self._pid, self._told = status.pid, 0
        for event in status.events:
            if event.number > self._told:
                self._told = event.number
                self._console.print(event.text, soft_wrap=True, markup=False, highlight=False)

    def _render(self) -> RenderableType:
        if self._status is None:
            return Text("loading", style="dim italic")
        return view(self._status, now=time.time() if self._status.state == "running" else None)

    def __enter__(self) -> Watcher:
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
    """Say so in a terminal while libraries and scene are loaded; elsewhere a mistake is the only line."""
    console = Console(stderr=True)
    return console.status("loading") if console.is_terminal else nullcontext()


def view(status: Status, *, now: float | None = None) -> RenderableType:
    """The whole dashboard.

    Args:
        status: What is shown.
        now: [s since 1970] The time it is shown at, to let the clock run; by default the last update.
    """
    elapsed = max(status.elapsed, now - status.started) if now else status.elapsed
    parts: list[RenderableType] = [_headline(status, elapsed), ""]
    parts.append(_side_by_side(_stages(status), _outcomes(status)))
    if status.activity:
        parts += ["", Text(status.activity, style="dim italic")]
    return Group(*parts)


def duration(seconds: float) -> str:
    """A duration as people read it: ``42 s``, ``3 min 05 s``, ``2 h 10 min``, ``250 h``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    if whole < 100 * 3600:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
    return f"{whole // 3600} h"


def _headline(status: Status, elapsed: float) -> RenderableType:
    grid = Table.grid(padding=(0, 2))
    for _ in range(5):
        grid.add_column(no_wrap=True)
    done = status.already + status.stored
    bar = ProgressBar(total=max(1, status.target), completed=min(done, status.target), width=18)
    left = status.remaining
    if status.state != "running":
        eta = status.state
    elif left is None:
        eta = "estimating"
    else:
        eta = f"{duration(max(0.0, left + status.elapsed - elapsed))} left"
    count = Text(f"{done} of {status.target} episodes", style="bold")
    grid.add_row(Text(status.task, style="bold cyan"), bar, count, duration(elapsed), Text(eta, style="green"))
    return grid


def _stages(status: Status) -> Table:
    table = Table(title="stages", title_justify="left", title_style="dim", box=None, padding=(0, 2, 0, 0))
    table.add_column("", no_wrap=True)
    for column in ("done", "CPU", "each", "per min"):
        table.add_column(column, justify="right", header_style="dim")
    for stage in STAGES:
        count, seconds, rate = status.counts.get(stage, 0), status.cpu_times.get(stage, 0.0), status.rate(stage)
        each = f"{seconds / count:.2f} s" if count else "-"
        table.add_row(stage, str(count), f"{seconds:.1f} s", each, f"{rate * 60:.1f}" if rate else "-")
    for name, seconds in sorted(status.waits.items()):
        table.add_row(
            Text(name.replace("_", " "), style="dim"),
            "",
            Text(f"{seconds:.1f} s", style="dim"),
            Text("wall", style="dim"),
        )
    return table


def _outcomes(status: Status) -> Table:
    table = Table(title="attempts", title_justify="left", title_style="dim", box=None, padding=(0, 2, 0, 0))
    table.add_column("")
    table.add_column("", justify="right")
    table.add_column("", justify="right")
    total = max(1, status.attempts)
    good = status.attempts - sum(status.failures.values())
    table.add_row(Text("succeeded", style="green"), str(good), f"{good / total:.0%}" if status.attempts else "-")
    for reason, count in sorted(status.failures.items(), key=lambda item: (-item[1], item[0])):
        table.add_row(Text(reason.replace("_", " "), style="yellow"), str(count), f"{count / total:.0%}")
    table.add_row(Text("written", style="dim"), Text(f"{status.byte_count / 1e6:.0f} MB", style="dim"), "")
    return table


def _side_by_side(left: Table, right: Table) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_row(left, right)
    return grid
