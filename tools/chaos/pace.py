"""Times between faults, based on the current duration of an episode, and progress lines of a scenario."""

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
"""CPU time of an episode of the scenario ``physics`` before any is measured [s]."""
_BETWEEN = (0.1, 0.6)
"""Range of the time between two faults, as fractions of an episode's time. With more frequent faults, workers end
before they have completed any work, and the run rightly stops."""
_PERIOD = 15.0
"""Time between two lines of progress [s]."""


class Pace:
    """Waits between faults, which are longer if episodes take longer, as on a slow or busy machine.

    Args:
        generator: Random generator for the times.
    """

    def __init__(self, generator: random.Random) -> None:
        self._random = generator
        self.episode_seconds = _EPISODE
        """CPU time of an episode without loading [s], measured in the runs so far."""

    def measure(self, status: dict[str, Any]) -> None:
        """Update the measured CPU time from a run's status."""
        if attempts := status.get("attempts"):
            work = sum(seconds for stage, seconds in status["cpu_times"].items() if stage != "load")
            self.episode_seconds = max(0.1, work / attempts)

    def interval(self, *, load: float | None = None) -> float:
        """Draw the time until the next fault [s].

        Args:
            load: Number of runnable processes per core; by default that of this machine.
        """
        if load is None:
            load = os.getloadavg()[0] / len(os.sched_getaffinity(0))
        return self._random.uniform(*_BETWEEN) * self.episode_seconds * max(1.0, load)


@contextmanager
def printing_progress(name: str, folder: Path) -> Iterator[None]:
    """Write progress lines to standard error at regular intervals while a scenario runs.

    Args:
        name: Name of the scenario.
        folder: Folder that contains the scenario's runs.
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
