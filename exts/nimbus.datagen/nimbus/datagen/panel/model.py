"""The panel's view-model: what it shows and what its controls do; a view draws it, calls it, and decides nothing."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from nimbus.datagen.errors import InputError
from nimbus.datagen.panel.launch import Job, Launcher
from nimbus.datagen.panel.status import RunStatus, read_run_status

MOST_EPISODES = 10_000_000
LARGEST_SEED = 2**63 - 1


class Viewport(Protocol):
    """Where layouts and pages are shown."""

    def show_stage(self, path: Path) -> None:
        """Open a USD stage; returns at once.

        Raises:
            InputError: It cannot be opened now.
        """
        ...

    def open_page(self, path: Path) -> None:
        """Open a page in the user's browser."""
        ...


@dataclass(frozen=True, kw_only=True)
class TaskSummary:
    """What is in a task that was found to be right."""

    name: str
    lines: tuple[str, ...]
    """Robot, scene, objects, cameras, what is randomized."""


class Panel:
    """A task, the layouts that can be drawn of it, and one run.

    Every action returns at once; call :meth:`poll` again and again to let it see how processes fare.

    Args:
        launcher: Starts what is to be done.
        viewport: Shows what came of it; None where the host shows stages and pages itself.
        folder: Where sampled stages are written.
    """

    def __init__(self, launcher: Launcher, viewport: Viewport | None, *, folder: Path) -> None:
        self._launcher, self._viewport, self._folder = launcher, viewport, folder
        self._observers: list[Callable[[], None]] = []
        self._errand: tuple[Job, Callable[[Job, int], None]] | None = None
        self._run: Job | None = None
        self._started = 0.0
        self.task = ""
        """Name or path, as the user gave it."""
        self.seed = 0
        self.index = 0
        """Of the layout that is drawn next."""
        self.episodes = 10
        self.out = ""
        """Folder of the dataset; empty for ``out/<task>``."""
        self.summary: TaskSummary | None = None
        self.problem = ""
        """What went wrong last, in one line."""
        self.activity = ""
        """What is being done now: ``checking``, ``drawing a layout``, ``running``, ``stopping``; or empty."""
        self.status: RunStatus | None = None

    # What a view asks

    @property
    def out_folder(self) -> Path:
        """Folder of the dataset that a run makes."""
        return Path(self.out) if self.out else Path.cwd() / "out" / (Path(self.task).stem or "task")

    @property
    def is_running(self) -> bool:
        """Whether a run is under way."""
        return self._run is not None

    @property
    def can_check(self) -> bool:
        """Whether a task can be opened now."""
        return bool(self.task) and self._errand is None

    @property
    def can_sample(self) -> bool:
        """Whether a layout can be drawn now."""
        return self.summary is not None and self._errand is None and self._viewport is not None

    @property
    def can_run(self) -> bool:
        """Whether a run can be started now."""
        return self.summary is not None and self._run is None

    @property
    def progress_line(self) -> str:
        """What is being done, and how far the run is."""
        parts, status = [self.activity], self.status
        if status is not None:
            parts = [self.activity or status.state, status.activity]
            parts += [f"{status.settled} of {status.target} episodes", f"{status.stored} stored"]
            parts += [f"{status.failed} failed attempts"] if status.failed else []
            parts += [f"about {status.remaining:.0f} s left"] if status.remaining and self.is_running else []
        return ", ".join(part for part in parts if part)

    @property
    def report(self) -> Path:
        """The page that a run leaves."""
        return self.out_folder / "report.html"

    def observe(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call a function after every change; returns what ends it."""
        self._observers.append(changed)

        def stop() -> None:
            if changed in self._observers:
                self._observers.remove(changed)

        return stop

    # What a view does

    def set_task(self, text: str) -> None:
        """Name another task: what is known of the last one no longer counts."""
        if text.strip() != self.task:
            self.task, self.summary, self.problem, self.index = text.strip(), None, "", 0
            self._changed()

    def set_seed(self, seed: int) -> None:
        """Draw other layouts."""
        self.seed, self.index = max(0, min(int(seed), LARGEST_SEED)), 0
        self._changed()

    def set_episodes(self, count: int) -> None:
        """How many episodes a run makes."""
        self.episodes = max(1, min(int(count), MOST_EPISODES))
        self._changed()

    def set_out(self, folder: str) -> None:
        """Where a run stores them."""
        self.out = folder.strip()
        self._changed()

    def check(self) -> None:
        """Open the task, and check it with all that it names."""
        if not self.can_check:
            return
        self.summary = None
        self._send(["check", self.task], "checking", self._checked)

    def sample(self, *, index: int | None = None) -> None:
        """Draw the layout of one episode and show it; without an index that of the next."""
        if not self.can_sample or (viewport := self._viewport) is None:
            return
        wanted = self.index if index is None else max(0, index)
        path = self._folder / f"{_file_safe(self.task)}-s{self.seed}-{wanted:06d}.usda"
        words = ["export-usd", self.task, "--seed", str(self.seed), "--index", str(wanted), "--out", str(path)]

        def drawn(job: Job, code: int) -> None:
            if code:
                self.problem = _last_line(job.output())
                return
            try:
                viewport.show_stage(path)
                self.index = wanted + 1
            except InputError as error:
                self.problem = str(error)

        self._send(words, "drawing a layout", drawn)

    def run(self) -> None:
        """Start a run, as a process of its own."""
        if not self.can_run:
            return
        self.problem, self.status = "", None
        words = ["run", "--task", self.task, "--seed", str(self.seed), "--episodes", str(self.episodes)]
        try:
            self._started = time.time()
            self._run = self._launcher.start([*words, "--out", str(self.out_folder)])
            self.activity = "running"
        except InputError as error:
            self.problem = str(error)
        self._changed()

    def cancel(self) -> None:
        """Let the run store what it is doing and stop; a second time, stop it now."""
        if self._run is not None:
            self._run.cancel()
            self.activity = "stopping"
            self._changed()

    def open_report(self) -> None:
        """Show the page of the last run."""
        if self._viewport is not None and self.report.is_file():
            self._viewport.open_page(self.report)
        else:
            self.problem = f"{self.report}: there is no report yet; a run writes it when it ends"
            self._changed()

    def poll(self) -> None:
        """See what became of what was started; cheap, call it some times a second."""
        before = (self.problem, self.activity, self.status, self.summary, self.index)
        self._poll_errand()
        self._poll_run()
        if before != (self.problem, self.activity, self.status, self.summary, self.index):
            self._changed()

    def close(self) -> None:
        """Forget observers and errands; a run goes on by itself."""
        if self._errand is not None:
            self._errand[0].cancel()
        self._observers.clear()
        self._errand = self._run = None

    # How

    def _send(self, words: list[str], activity: str, done: Callable[[Job, int], None]) -> None:
        self.problem = ""
        try:
            self._errand = self._launcher.start(words), done
            self.activity = activity
        except InputError as error:
            self.problem = str(error)
        self._changed()

    def _poll_errand(self) -> None:
        if self._errand is None:
            return
        job, done = self._errand
        if (code := job.poll()) is not None:
            self._errand = None
            self.activity = "running" if self._run else ""
            done(job, code)

    def _poll_run(self) -> None:
        if self._run is None:
            return
        self.status = read_run_status(self.out_folder, since=self._started) or self.status
        if (code := self._run.poll()) is not None:
            if code:
                self.problem = "stopped" if code in (130, -2) else _last_line(self._run.output())
            self._run = None
            if self._errand is None:
                self.activity = ""

    def _checked(self, job: Job, code: int) -> None:
        text = job.output()
        try:
            found: dict[str, Any] = json.loads(text.strip().splitlines()[-1])
        except (ValueError, IndexError):
            self.problem = _last_line(text) or f"the check ended with code {code}"
            return
        self.problem = str(found.get("problem", ""))
        if not self.problem:
            self.summary = _summary(found)

    def _changed(self) -> None:
        for observer in list(self._observers):
            observer()


def _summary(found: dict[str, Any]) -> TaskSummary:
    lines = [f"robot {found['robot']} in {found['scene']}"]
    lines += [f"objects {line}" for line in found["objects"]]
    lines += [f"camera {line}" for line in found["cameras"]]
    lines += [f"randomized: {', '.join(found['randomized']) or 'nothing'}"]
    return TaskSummary(name=str(found["name"]), lines=tuple(lines))


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def _file_safe(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", Path(name).stem) or "task"
