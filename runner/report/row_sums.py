"""Sums over a ledger's attempts, computed in one pass with an amount of memory that does not grow with the ledger."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

import numpy as np

from nimbus.datagen.store.ledger.attempt import Attempt
from nimbus.datagen.store.ledger.records import Run
from nimbus.datagen.store.remote.uploads import has_files

ONCE = ("load",)
"""Stages whose work is done at a run's start, for all of its episodes."""
MOST_LISTED = 1000
"""Largest number of stored episodes, and of missing files, that a report lists."""
MOST_SAMPLED = 10_000
"""Largest number of episodes for yields, maps and charts; of a larger dataset, evenly spaced episodes are used."""


@dataclass(kw_only=True)
class RunSums:
    """Attempts that ended in one run."""

    stored: int = 0
    last: float = 0.0
    """End of the last attempt [s since 1970]."""


@dataclass(kw_only=True)
class RowSums:
    """Sums over all attempts; see :meth:`add`."""

    folder: Path
    starts: Sequence[float]
    """Start of each run [s since 1970]."""
    stored: int = 0
    plans: int = 0
    failed: int = 0
    given_up: int = 0
    failure_bytes: int = 0
    failure_seconds: float = 0.0
    """CPU time of all failed attempts, including each variant [s]."""
    plan_seconds: float = 0.0
    """CPU time of all attempts; variants of one plan are counted once [s]."""
    longest: float = 0.0
    """CPU time of the episode that took the most [s]."""
    reasons: Counter[str] = field(default_factory=Counter)
    phases: Counter[str] = field(default_factory=Counter)
    tried: Counter[str] = field(default_factory=Counter)
    """Plans by kind of object."""
    good: Counter[str] = field(default_factory=Counter)
    """Successful plans by kind of object."""
    totals: dict[str, float] = field(default_factory=dict)
    """CPU time by stage [s]."""
    waits: dict[str, float] = field(default_factory=dict)
    """Waiting time by queue [s]."""
    durations: Counter[float] = field(default_factory=Counter)
    """Stored motions by length [s]; few lengths occur, because a motion lasts a whole number of steps."""
    listed: list[Attempt] = field(default_factory=list)
    outdated: list[str] = field(default_factory=list)
    """First of the files that are missing or changed."""
    outdated_count: int = 0
    runs: list[RunSums] = field(default_factory=list)

    @classmethod
    def of(cls, folder: Path, attempts: Iterable[Attempt], runs: Sequence[Run]) -> RowSums:
        """Add up attempts, which come in the order of their episodes.

        Args:
            folder: Folder of the dataset.
            attempts: Rows of the ledger.
            runs: Runs of the dataset.
        """
        sums = cls(folder=folder, starts=[run.started for run in runs], runs=[RunSums() for _ in runs])
        for _, episode in groupby(attempts, key=lambda row: (row.task, row.seed, row.idx)):
            sums._add_episode(episode)
        return sums

    def _add_episode(self, rows: Iterable[Attempt]) -> None:
        """Add all attempts at one episode. Variants of an attempt share one plan, which is counted once."""
        cost = 0.0
        plans: dict[int, Attempt] = {}
        for row in rows:
            plans[row.attempt] = row
            cost += cpu_seconds(row)
            self._add_row(row)
        self.longest = max(self.longest, cost)
        for plan in plans.values():
            self._add_plan(plan)

    def _add_row(self, row: Attempt) -> None:
        for name, seconds in row.times.items():
            totals = self.waits if _is_wait(name) else self.totals
            totals[name] = totals.get(name, 0.0) + seconds
            self.failure_seconds += 0.0 if row.success or _is_wait(name) else seconds
        if (place := bisect_right(self.starts, row.ended) - 1) >= 0:
            run = self.runs[place]
            run.stored, run.last = run.stored + bool(row.path), max(run.last, row.ended)
        if row.path:
            self.stored += 1
            self.durations[row.duration] += 1
            if len(self.listed) < MOST_LISTED:
                self.listed.append(row)
            if not has_files(self.folder, row):
                self.outdated_count += 1
                if len(self.outdated) < MOST_LISTED:
                    self.outdated.append(row.path)

    def _add_plan(self, plan: Attempt) -> None:
        self.plans += 1
        self.plan_seconds += cpu_seconds(plan)
        kinds = {placed["kind"] for placed in plan.objects}
        self.tried.update(kinds)
        if plan.success:
            self.good.update(kinds)
            return
        self.failed += 1
        self.given_up += plan.final
        self.reasons[plan.reason] += 1
        self.phases[_phase(plan)] += 1
        self.failure_bytes += plan.failure.byte_count if plan.failure else 0

    def motions(self) -> dict[str, float]:
        """Return the shortest, median, longest and total stored motion [s]."""
        if not self.durations:
            return {}
        seconds = np.array(sorted(self.durations))
        ends = np.cumsum([self.durations[value] for value in seconds.tolist()])
        middle = np.searchsorted(ends, [(ends[-1] - 1) // 2, ends[-1] // 2], side="right")
        return {
            "shortest": float(seconds[0]),
            "median": float(seconds[middle].mean()),
            "longest": float(seconds[-1]),
            "total": float(seconds @ np.diff(ends, prepend=0)),
        }


def one_of_each_plan(attempts: Iterable[Attempt]) -> Iterator[Attempt]:
    """Yield one attempt per plan; variants of an attempt share one plan.

    Args:
        attempts: Attempts in the order of their episodes.
    """
    for _, episode in groupby(attempts, key=lambda row: (row.task, row.seed, row.idx)):
        yield from {row.attempt: row for row in episode}.values()


def cpu_seconds(attempt: Attempt) -> float:
    """Return an attempt's CPU time, without waits and without work that is done once per run [s]."""
    return sum(seconds for name, seconds in attempt.times.items() if not _is_wait(name) and name not in ONCE)


def _is_wait(name: str) -> bool:
    return name.endswith("_wait")


def _phase(attempt: Attempt) -> str:
    step = attempt.phase.split(" ")[0] if attempt.phase else "start"
    return f"{step}: {attempt.reason}"
