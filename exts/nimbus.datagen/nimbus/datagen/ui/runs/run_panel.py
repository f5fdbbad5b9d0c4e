"""View model of one run, which it starts in a separate process and monitors."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.asset_folders import file_in
from nimbus.datagen.files.bounded import Count, Seconds, read_bytes, read_typed
from nimbus.datagen.files.own_files import default_folder
from nimbus.datagen.ui.document.allowed_folders import AllowedFolders
from nimbus.datagen.ui.runs.launch import Launcher, RunningProcess

MAX_EPISODES = 10_000_000
MAX_SEED = 2**63 - 1
_MOST_REPORT = 30 * 2**20
"""Limit of a report [bytes]."""


@dataclass(frozen=True, kw_only=True)
class RunStatus:
    """State of a run at one moment."""

    state: str = ""
    """``running``, or the result: ``done``, ``short``, ``interrupted``, ``failed``."""
    activity: str = ""
    target: int = 0
    settled: int = 0
    """Number of episodes that need no more work."""
    stored: int = 0
    """Number of stored episodes, including those of earlier runs into this folder."""
    failed: int = 0
    """Number of attempts that did not succeed."""
    remaining: float | None = None
    """Remaining time [s]; None while unknown."""

    @property
    def share(self) -> float:
        """Completed fraction of the run, 0 to 1."""
        return min(1.0, self.settled / self.target) if self.target else 0.0


_FILE_CLOCK = 0.05
"""Largest lag of the clock of file times behind :func:`time.time` [s]."""


def read_run_status(folder: Path, *, since: float = 0.0) -> RunStatus | None:
    """Read the status of a run; None if there is none or it cannot be read.

    Args:
        folder: Folder of the dataset.
        since: Time before which a status belongs to an earlier run [s since 1970].
    """
    try:
        path = file_in(folder, "status.json")
        if path.stat().st_mtime < since - _FILE_CLOCK:
            return None
        found = read_typed(_StatusFile, path)
    except (OSError, InputError):
        return None
    return RunStatus(
        state=found.state,
        activity=found.activity,
        target=found.target,
        settled=found.settled,
        stored=found.already_stored + found.stored,
        failed=sum(found.failures.values()),
        remaining=found.remaining_seconds,
    )


@dataclass(frozen=True, kw_only=True)
class _StatusFile:
    """Part of ``status.json`` that is shown."""

    state: str = ""
    activity: str = ""
    target: Count = 0
    settled: Count = 0
    stored: Count = 0
    already_stored: Count = 0
    failures: dict[str, Count] = field(default_factory=dict)
    remaining_seconds: Seconds | None = None


class ResultViewer(Protocol):
    """Interface to a host that shows pages."""

    def open_page(self, page: str) -> None:
        """Open an HTML page in the user's browser."""
        ...


class RunPanel:
    """View model of one run of a task; a view renders it and calls it.

    Every action returns at once; call :meth:`poll` a few times per second.

    Args:
        launcher: Starts processes.
        viewer: Shows the report; None if the host shows it in another way.
        allowed: Folders in which datasets may be; all by default.
    """

    def __init__(
        self, launcher: Launcher, viewer: ResultViewer | None = None, *, allowed: AllowedFolders | None = None
    ) -> None:
        self._launcher, self._viewer, self._allowed = launcher, viewer, allowed
        self._observers: list[Callable[[], None]] = []
        self._run: RunningProcess | None = None
        self._started = 0.0
        self.task = ""
        """Path of the file that is run."""
        self.seed = 0
        self.episodes = 10
        self.out = ""
        """Folder of the dataset; empty for ``out/<task>``."""
        self.run_folder = Path()
        """Folder of the dataset of the last run."""
        self.problem = ""
        """The last error, in one line."""
        self.activity = ""
        """``running`` or ``stopping``; or empty."""
        self.status: RunStatus | None = None

    # Queries of a view

    @property
    def out_folder(self) -> Path:
        """Folder of the dataset that the next run makes.

        Raises:
            InputError: It is a link, or outside the allowed folders.
        """
        folder = Path(self.out) if self.out else default_folder(Path(self.task).stem or "task")
        if self._allowed is not None:
            self._allowed.check(folder)
        return folder

    @property
    def is_running(self) -> bool:
        """True while a run is in progress."""
        return self._run is not None

    @property
    def can_run(self) -> bool:
        """True if a run can be started now."""
        return bool(self.task) and self._run is None

    @property
    def progress_line(self) -> str:
        """Activity and progress of the run."""
        parts, status = [self.activity], self.status
        if status is not None:
            parts = [self.activity or status.state, status.activity]
            parts += [f"{status.settled} of {status.target} episodes", f"{status.stored} stored"]
            parts += [f"{status.failed} failed attempts"] if status.failed else []
            parts += [f"about {status.remaining:.0f} s left"] if status.remaining and self.is_running else []
        return ", ".join(part for part in parts if part)

    @property
    def report(self) -> Path:
        """Path of the run's report page.

        Raises:
            InputError: The folder of the dataset is a link, or outside the allowed folders.
        """
        return self.out_folder / "report.html"

    def frame_report(self, *, height: str) -> str:
        """Return the run's report in a frame for which a browser loads nothing: the dataset may come from others.

        Args:
            height: Height of the frame, in CSS.

        Raises:
            InputError: There is no report, or its folder is a link or outside the allowed folders.
        """
        from nimbus.datagen.media.pages import frame_page

        if not self.report.is_file():
            raise InputError("there is no report yet", where=str(self.report), instead="wait for the end of the run")
        page = read_bytes(self.report, limit=_MOST_REPORT, follow=False).decode(errors="replace")
        return frame_page(page, height=height)

    def observe(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call a function after every change; return a function that stops this."""
        self._observers.append(changed)

        def stop() -> None:
            if changed in self._observers:
                self._observers.remove(changed)

        return stop

    # Actions of a view

    def set_task(self, text: str) -> None:
        """Set the task of the next run."""
        if text.strip() != self.task:
            self.task, self.problem = text.strip(), ""
            self._changed()

    def set_seed(self, seed: int) -> None:
        """Set the seed of the run."""
        self.seed = max(0, min(int(seed), MAX_SEED))
        self._changed()

    def set_episodes(self, count: int) -> None:
        """Set the number of episodes of a run."""
        self.episodes = max(1, min(int(count), MAX_EPISODES))
        self._changed()

    def set_out(self, folder: str) -> None:
        """Set the folder of the dataset.

        Raises:
            InputError: The folder is outside the allowed folders; the previous one stays.
        """
        if self._allowed is not None and folder.strip():
            self._allowed.check(Path(folder.strip()))
        self.out = folder.strip()
        self._changed()

    def run(self) -> None:
        """Start a run in a separate process."""
        if not self.can_run:
            return
        self.problem, self.status = "", None
        words = ["run", "--task", self.task, "--seed", str(self.seed), "--episodes", str(self.episodes)]
        try:
            self._started = time.time()
            self.run_folder = self.out_folder
            self._run = self._launcher.start([*words, "--out", str(self.run_folder)])
            self.activity = "running"
        except InputError as error:
            self.problem = str(error)
        self._changed()

    def cancel(self) -> None:
        """Request a stop after the work in progress; a second call stops at once."""
        if self._run is not None:
            self._run.cancel()
            self.activity = "stopping"
            self._changed()

    def open_report(self) -> None:
        """Show the report of the last run."""
        try:
            page, self.problem = self.frame_report(height="97vh"), ""
            if self._viewer is not None:
                self._viewer.open_page(page)
        except InputError as error:
            self.problem = str(error)
        self._changed()

    def poll(self) -> None:
        """Update the state of the started process; this is cheap, call it a few times per second."""
        before = (self.problem, self.activity, self.status)
        self._poll_run()
        if before != (self.problem, self.activity, self.status):
            self._changed()

    def close(self) -> None:
        """Remove observers; a run in progress continues."""
        self._observers.clear()
        self._run = None

    def _poll_run(self) -> None:
        if self._run is None:
            return
        self.status = read_run_status(self.run_folder, since=self._started) or self.status
        if (code := self._run.poll()) is not None:
            if code:
                self.problem = "stopped" if code in (130, -2) else _last_line(self._run.output())
            self._run, self.activity = None, ""

    def _changed(self) -> None:
        for observer in list(self._observers):
            observer()


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""
