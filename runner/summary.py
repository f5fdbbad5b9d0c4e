"""What a run made, in figures: read from the ledger and the run's status, shown by ``nimbus report``."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nimbus.datagen.store.dataset import read_info
from nimbus.datagen.store.ledger import Attempt, Ledger
from nimbus.runner.status import STAGES, read_status

ONCE = ("load",)
"""Stages whose work is done at a run's start, for all of its episodes."""


@dataclass(frozen=True, kw_only=True)
class KindYield:
    """Attempts in which a kind of object took part, and how many of them succeeded."""

    kind: str
    attempts: int
    successes: int


@dataclass(frozen=True, kw_only=True)
class StageTime:
    """CPU time of a stage."""

    stage: str
    total: float
    """[s]"""
    per_episode: float
    """[s] a stored episode, failed attempts included"""


@dataclass(frozen=True, kw_only=True)
class Summary:
    """All figures of a report."""

    task: str
    robot: str
    seed: int
    rate: float
    cameras: dict[str, tuple[int, int]]
    state: str
    """How the last run ended; empty when unknown."""
    target: int
    """Episodes that the last run was asked for; 0 when unknown."""
    stored: int
    given_up: int
    """Episodes that failed in every attempt."""
    attempts: int
    """Plans tried; one that several variants show counts once."""
    successes: int
    reasons: dict[str, int]
    """Failed attempts by reason, most frequent first."""
    phases: dict[str, int]
    """Failed attempts by skill and reason."""
    kinds: tuple[KindYield, ...]
    stages: tuple[StageTime, ...]
    """Those that every episode goes through."""
    once: dict[str, float]
    """[s] CPU spent once a run, however many episodes it makes, by stage"""
    waits: dict[str, float]
    """[s] spent waiting for a queue, by name"""
    durations: dict[str, float]
    """[s] of the stored motions: shortest, median, longest, total"""
    step_count: int
    byte_count: int
    episodes: tuple[Attempt, ...]
    """The stored ones, by index and variant."""
    outdated: tuple[str, ...] = ()
    """Files of stored episodes that are not there, or of another size; the next run makes them again."""

    @property
    def success_rate(self) -> float:
        """Attempts that succeeded, 0 to 1."""
        return self.successes / self.attempts if self.attempts else 0.0

    @property
    def cpu_per_episode(self) -> float:
        """[s] CPU a stored episode, failed attempts included; what is done once a run is left out."""
        return sum(stage.per_episode for stage in self.stages)


def summarize(folder: Path) -> Summary:
    """Gather the figures of a dataset.

    Raises:
        InputError: There is no dataset in the folder.
    """
    info, status = read_info(folder), read_status(folder)
    ledger = Ledger(folder, read_only=True)
    try:
        attempts = ledger.attempts()
    finally:
        ledger.close()
    stored = tuple(attempt for attempt in attempts if attempt.path)
    # Variants show one plan: it counts once.
    plans = list({(attempt.seed, attempt.idx, attempt.attempt): attempt for attempt in attempts}.values())
    failed = [plan for plan in plans if not plan.success]
    totals = _totals(attempts, waits=False)
    return Summary(
        task=info.task,
        robot=info.robot,
        seed=info.seed,
        rate=info.rate,
        cameras=info.cameras,
        state=status.state if status else "",
        target=status.target if status else 0,
        stored=len(stored),
        given_up=sum(attempt.final for attempt in failed),
        attempts=len(plans),
        successes=len(plans) - len(failed),
        reasons=dict(Counter(attempt.reason for attempt in failed).most_common()),
        phases=dict(Counter(_phase(attempt) for attempt in failed).most_common()),
        kinds=_kinds(plans),
        stages=_stages(totals, stored_count=len(stored)),
        once={stage: totals[stage] for stage in ONCE if stage in totals},
        waits=_totals(attempts, waits=True),
        durations=_durations(stored),
        step_count=info.step_count,
        byte_count=info.byte_count,
        episodes=stored,
        outdated=tuple(attempt.path for attempt in stored if not attempt.is_in(folder)),
    )


def _phase(attempt: Attempt) -> str:
    step = attempt.phase.split(" ")[0] if attempt.phase else "start"
    return f"{step}: {attempt.reason}"


def _kinds(plans: list[Attempt]) -> tuple[KindYield, ...]:
    tried: Counter[str] = Counter()
    good: Counter[str] = Counter()
    for attempt in plans:
        kinds = {placed["kind"] for placed in attempt.objects}
        tried.update(kinds)
        good.update(kinds if attempt.success else ())
    rows = (KindYield(kind=kind, attempts=count, successes=good[kind]) for kind, count in tried.items())
    return tuple(sorted(rows, key=lambda row: (row.successes / row.attempts, row.kind)))


def _totals(attempts: list[Attempt], *, waits: bool) -> dict[str, float]:
    totals: dict[str, float] = {}
    for attempt in attempts:
        for name, seconds in attempt.times.items():
            if name.endswith("_wait") is waits:
                totals[name] = totals.get(name, 0.0) + seconds
    return totals


def _stages(totals: dict[str, float], *, stored_count: int) -> tuple[StageTime, ...]:
    order = [stage for stage in STAGES if stage in totals] + sorted(set(totals) - set(STAGES))
    return tuple(
        StageTime(stage=stage, total=totals[stage], per_episode=totals[stage] / max(1, stored_count))
        for stage in order
        if stage not in ONCE
    )


def _durations(stored: tuple[Attempt, ...]) -> dict[str, float]:
    seconds = np.array([attempt.duration for attempt in stored])
    if not len(seconds):
        return {}
    return {
        "shortest": float(seconds.min()),
        "median": float(np.median(seconds)),
        "longest": float(seconds.max()),
        "total": float(seconds.sum()),
    }
