"""Cell of a cluster's node that waits for measured times of episodes, without computing, and stores a few bytes."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cluster_balance import COSTS
from nimbus.datagen.store.ledger.attempt import Attempt
from nimbus.datagen.store.ledger.records import Fault
from nimbus.runner.cluster.job import ClusterJob
from nimbus.runner.cluster.messages import CellTask
from nimbus.runner.cluster.outbox import CellResult
from nimbus.runner.monitor.status import Status

GROUP = "replay"


def make_light_attempt(
    task: str, name: str, index: int, *, times: Mapping[str, float], drawn: Mapping[str, Any]
) -> Attempt:
    """Return the ledger's row of an episode whose file holds eight bytes.

    Args:
        task: Name of the task.
        name: Id of the episode.
        index: Index of the episode.
        times: CPU time by stage [s].
        drawn: Drawn values.
    """
    return Attempt(
        episode_id=name,
        task=task,
        seed=0,
        idx=index,
        variant=0,
        attempt=0,
        final=True,
        success=True,
        path=f"episodes/{name}.hdf5",
        byte_count=8,
        sha256="0" * 64,
        times=dict(times),
        drawn=dict(drawn),
        ended=time.time(),
    )


class ReplayedCosts:
    """Times for episodes, taken from measured episodes with the same number of objects.

    Args:
        job: The job, whose draws determine the number of objects.
        speed: Ratio of the measured to the replayed times.
    """

    def __init__(self, job: ClusterJob, *, speed: float) -> None:
        task = job.tasks[0]
        rows = json.loads(COSTS.read_text())
        random_numbers = np.random.Generator(np.random.Philox(key=7))
        self.classes = [task.cost_class(index) for index in range(task.spec.episodes)]
        by_class = {number: [row[2] for row in rows if row[1] == number + 2] for number in set(self.classes)}
        self.seconds = [float(random_numbers.choice(by_class[number])) / speed for number in self.classes]


class ReplayedCell:
    """Cell without processes, which waits for the time of each fed episode, one after the other.

    Args:
        task: The task.
        folder: Folder of the node.
        slots: Number of workers; one.
    """

    costs: ReplayedCosts

    def __init__(self, task: CellTask, folder: Path, *, slots: int) -> None:
        self.task, self.folder, self.slots = task, folder / task.group, slots
        self.failure, self.spool_bytes = "", 0
        self._fed: dict[int, float] = {}
        """Time at which each episode was fed [s]."""
        self._current, self._until = -1, 0.0
        self._made: list[int] = []
        self._is_running = False
        (self.folder / "episodes").mkdir(parents=True, exist_ok=True)

    @property
    def is_running(self) -> bool:
        """True between the first lease and the end."""
        return self._is_running

    def keep_running(self, now: float) -> None:
        """Finish the episodes whose time is over, as a worker would do without waiting for the agent."""
        self._is_running = True
        while self._current < 0 or now >= self._until:
            if self._current >= 0:
                self._made.append(self._current)
                self._current = -1
            waiting = [index for index in self._fed if index not in self._made]
            if not waiting:
                return
            self._current = waiting[0]
            self._until = max(self._until, self._fed[self._current]) + self.costs.seconds[self._current]

    def feed(self, indices: Iterable[int]) -> None:
        """Accept the episodes to make."""
        now = time.monotonic()
        self._fed = {index: self._fed.get(index, now) for index in indices}

    def is_fit(self) -> bool:
        """Return True, because nothing needs to be loaded."""
        return self._is_running

    def results(self, indices: Iterable[int]) -> Iterator[CellResult]:
        """Return finished episodes."""
        for index in indices:
            if index in self._made:
                self._made.remove(index)
                del self._fed[index]
                yield CellResult(index=index, attempts=(self._attempt(index),))

    def _attempt(self, index: int) -> Attempt:
        name = f"{GROUP}-s0-{index:06d}-v0-00000000"
        path = f"episodes/{name}.hdf5"
        (self.folder / path).write_bytes(b"episode!")
        seconds = self.costs.seconds[index]
        times = {"plan": 0.26 * seconds, "render": 0.56 * seconds, "store": 0.18 * seconds}
        drawn = {f"objects.{number}": [0.12345] * 12 for number in range(20)}
        return make_light_attempt(GROUP, name, index, times=times, drawn=drawn)

    def unreported(self) -> list[int]:
        """Return nothing: results of an earlier agent are lost with it."""
        return []

    def faults(self) -> list[Fault]:
        """Return nothing."""
        return []

    def info_text(self) -> str:
        """Return the unchanged text."""
        return ""

    def forget_info(self) -> None:
        """Do nothing."""

    def has_features(self) -> bool:
        """Return True."""
        return True

    def remove_files(self, attempts: Iterable[Attempt]) -> None:
        """Remove acknowledged files."""
        for attempt in attempts:
            (self.folder / attempt.path).unlink(missing_ok=True)

    def status(self) -> Status | None:
        """Return nothing."""
        return None

    def close_feed(self) -> None:
        """Do nothing."""

    def drain(self) -> None:
        """End at once."""
        self._is_running = False

    def kill(self) -> None:
        """End at once."""
        self._is_running = False
