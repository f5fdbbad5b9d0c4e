"""Times between faults, from what an episode takes on this machine now, and lines with the progress of a scenario."""

from __future__ import annotations

import os
import random
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tools.chaos import checker
from tools.chaos.processes import read_json

_EPISODE = 2.0
"""[s] CPU of an episode of the scenario ``physics``, as long as none is measured."""
_BETWEEN = (0.1, 0.6)
"""Shares of an episode's time between which the time between two faults is drawn. Faults that come faster end workers
before they have done anything, and a run is rightly given up."""
_PERIOD = 15.0
"""[s] Between two lines of progress."""


class Pace:
    """Waits between faults, longer where episodes take longer: on a slow machine, or beside other work.

    Args:
        generator: Draws the times.
    """

    def __init__(self, generator: random.Random) -> None:
        self._random = generator
        self.episode_seconds = _EPISODE
        """[s] CPU of an episode, loading left out; of the runs seen so far."""

    def measure(self, status: dict[str, Any]) -> None:
        """Take in the figures of a run's status."""
        if attempts := status.get("attempts"):
            work = sum(seconds for stage, seconds in status["cpu_times"].items() if stage != "load")
            self.episode_seconds = max(0.1, work / attempts)

    def interval(self, *, load: float | None = None) -> float:
        """Draw the time until the next fault [s].

        Args:
            load: Processes that want to run, over the cores; that of this machine when not given.
        """
        if load is None:
            load = os.getloadavg()[0] / len(os.sched_getaffinity(0))
        return self._random.uniform(*_BETWEEN) * self.episode_seconds * max(1.0, load)


@contextmanager
def printing_progress(name: str, folder: Path) -> Iterator[None]:
    """Write a line to standard error now and then, while a scenario goes on.

    Args:
        name: Of the scenario.
        folder: Its runs are below it.
    """
    over, begin = threading.Event(), time.monotonic()

    def write() -> None:
        while not over.wait(_PERIOD):
            sys.stderr.write(f"{name}: {time.monotonic() - begin:.0f} s{_progress(folder)}\n")

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _progress(folder: Path) -> str:
    """Describe the run whose status changed last."""
    files = sorted(folder.glob("*/status.json"), key=_age)
    status = read_json(files[-1]) if files else {}
    if not status:
        return ""
    run = files[-1].parent
    known = len(checker.faults(run)) if (run / "ledger.sqlite").exists() else 0
    return f", {run.name}: {status['settled']} of {status['target']} episodes, {known} faults in its ledger"


def _age(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
