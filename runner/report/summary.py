"""Summary of a dataset's runs, from the ledger and the status, as shown by ``nimbus report``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from nimbus.datagen.analysis.semantic_yields import SemanticYield, find_semantic_yields
from nimbus.datagen.analysis.yields import Yields, find_yields
from nimbus.datagen.store.dataset import read_info
from nimbus.datagen.store.ledger.ledger import Attempt, Ledger
from nimbus.datagen.store.ledger.records import EpisodeStatus, Fault
from nimbus.datagen.store.remote.address import parse_address
from nimbus.datagen.store.remote.cache_root import address_of
from nimbus.datagen.store.remote.traffic import read_traffic
from nimbus.datagen.store.remote.working_copy import copy_folder, is_remote
from nimbus.runner.monitor.lower_bound import LowerBound, find_bound
from nimbus.runner.monitor.status import STAGES, read_status
from nimbus.runner.report.figures import RunFigures, run_figures
from nimbus.runner.report.row_sums import MOST_SAMPLED, ONCE, RowSums


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
    """Total CPU time [s]."""
    per_episode: float
    """CPU time per stored episode, failed attempts included [s]."""


@dataclass(frozen=True, kw_only=True)
class Summary:
    """All figures of a report."""

    task: str
    robot: str
    seed: int
    rate: float
    cameras: dict[str, tuple[int, int]]
    state: str
    """Result of the last run; empty when unknown."""
    target: int
    """Number of episodes that the last run was to store; 0 if unknown."""
    stored: int
    given_up: int
    """Episodes that failed in every attempt."""
    attempts: int
    """Plans tried; a plan that several variants share is counted once."""
    successes: int
    reasons: dict[str, int]
    """Failed attempts by reason, most frequent first."""
    phases: dict[str, int]
    """Failed attempts by skill and reason."""
    kinds: tuple[KindYield, ...]
    yields: Yields
    """Number of tried and of kept episodes for every drawn value."""
    semantic_yields: tuple[SemanticYield, ...]
    """First attempts and kept episodes by object, category, scene, relation and length."""
    plan_seconds: float
    """CPU time of all attempts; variants of one plan are counted once [s]."""
    failure_seconds: float
    """CPU time of all failed attempts, including each variant [s]."""
    stages: tuple[StageTime, ...]
    """Stages of every episode."""
    once: dict[str, float]
    """CPU time spent once in each run, for any number of episodes, by stage [s]."""
    waits: dict[str, float]
    """Time spent waiting for a queue, by name [s]."""
    durations: dict[str, float]
    """Lengths of the stored motions [s]: shortest, median, longest, total."""
    step_count: int
    byte_count: int
    """Size of the stored episodes [bytes]."""
    failure_bytes: int
    """Size of the failed attempts that are kept [bytes]."""
    episodes: tuple[Attempt, ...]
    """The first stored episodes, by index and variant."""
    outdated: tuple[str, ...] = ()
    """First files of stored episodes that are missing or have another size; a run makes these episodes again."""
    outdated_count: int = 0
    """Number of all of these files."""
    wall_seconds: float = 0.0
    """Duration of all runs together [s]."""
    startup_seconds: float = 0.0
    """Time of all runs together until their first orders [s]."""
    cores: float = 0.0
    """Mean number of cores of the runs, weighted by their durations."""
    longest_episode: float = 0.0
    """CPU time of the most expensive episode, without one-time loading [s]."""
    stage_seconds: dict[str, float] = field(default_factory=dict)
    """CPU time by stage, waits left out [s]."""
    busy_seconds: dict[str, float] = field(default_factory=dict)
    """Time after start-up during which each GPU, by UUID, and the disk (``disk``) were busy in all runs [s]."""
    faults: dict[str, int] = field(default_factory=dict)
    """Workers that died, hung or raised, by kind."""
    fault_rows: tuple[Fault, ...] = ()
    quarantined: int = 0
    """Episodes given up because they killed workers."""
    runs: tuple[RunFigures, ...] = ()
    price_per_hour: float | None = None
    """Price of the machine, in any currency."""
    traffic: dict[str, float] = field(default_factory=dict)
    """Traffic of a dataset in a store, on this machine: hits, bytes, egress cost [USD] at list price."""

    @property
    def success_rate(self) -> float:
        """Fraction of plans that succeeded."""
        return self.successes / self.attempts if self.attempts else 0.0

    @property
    def bound_seconds(self) -> float:
        """Shortest time that the measured work could have taken on these cores, GPUs and this disk [s]."""
        return self._bound(sum(self.stage_seconds.values())).seconds

    @property
    def distance(self) -> float | None:
        """Ratio of the wall time to ``bound_seconds``; None if nothing was measured."""
        return self.wall_seconds / self.bound_seconds if self.bound_seconds and self.wall_seconds else None

    @property
    def working_seconds(self) -> float:
        """Duration of all runs together, without their start-up [s]."""
        return self.wall_seconds - self.startup_seconds

    @property
    def bound_after_startup(self) -> float:
        """Shortest time that the work could have taken without loading, which is done once [s]."""
        return self.working_bound.seconds

    @property
    def working_bound(self) -> LowerBound:
        """Bound of the work without loading, and the resource that determines it."""
        return self._bound(sum(self.stage_seconds.values()) - self.stage_seconds.get("load", 0.0))

    @property
    def distance_after_startup(self) -> float | None:
        """Ratio of ``working_seconds`` to ``bound_after_startup``; None if nothing was measured."""
        known = self.bound_after_startup and self.wall_seconds
        return self.working_seconds / self.bound_after_startup if known else None

    @property
    def stored_per_hour(self) -> float | None:
        """Stored episodes per hour of wall time."""
        return self.stored / self.wall_seconds * 3600 if self.wall_seconds else None

    @property
    def stored_per_working_hour(self) -> float | None:
        """Stored episodes per hour without the start-up, the rate of a long run."""
        return self.stored / self.working_seconds * 3600 if self.working_seconds > 0 else None

    @property
    def cost_per_episode(self) -> float | None:
        """Cost of a stored episode; None without a price, or without an episode."""
        if self.price_per_hour is None or not self.stored:
            return None
        return self.price_per_hour * self.wall_seconds / 3600 / self.stored

    def to_plain(self) -> dict[str, Any]:
        """Return all figures with stable keys, as described in ``docs/status.md``."""
        return asdict(self) | {
            "episodes_asked": self.target,
            "episodes_stored": self.stored,
            "yield": self.success_rate,
            "flags": [asdict(row) for row in self.yields.flags],
            "bound_seconds": self.bound_seconds,
            "distance": self.distance,
            "bound_after_startup": self.bound_after_startup,
            "distance_after_startup": self.distance_after_startup,
            "bound_by": self.working_bound.resource,
            "rejected": self.reasons,
            "stored_per_hour": self.stored_per_hour,
            "cost_per_episode": self.cost_per_episode,
        }

    def _bound(self, cpu_seconds: float) -> LowerBound:
        return find_bound(cpu_seconds, cores=self.cores, longest_episode=self.longest_episode, busy=self.busy_seconds)

    @property
    def each(self) -> str:
        """Unit of CPU times: per stored episode, or in total if no episode is stored."""
        return "an episode" if self.stored else "in all, none stored"

    @property
    def cpu_per_episode(self) -> float:
        """CPU time per stored episode [s], failed attempts included, one-time work of runs excluded."""
        return sum(stage.per_episode for stage in self.stages)


def summarize(folder: Path, *, price_per_hour: float | None = None) -> Summary:
    """Gather the figures of a dataset.

    Args:
        folder: Folder of the dataset.
        price_per_hour: Price per hour of the machine.

    Raises:
        InputError: There is no dataset in the folder.
    """
    info, status = read_info(folder), read_status(folder)
    ledger = Ledger(folder, read_only=True)
    try:
        with ledger.snapshot():
            faults, runs = ledger.faults(), ledger.runs()
            quarantined = len(ledger.episodes(EpisodeStatus.QUARANTINED))
            sums = RowSums.of(folder, ledger.walk_attempts(), runs)
            sample = list(ledger.sample_attempts(MOST_SAMPLED))
    finally:
        ledger.close()
    totals = sums.totals
    run_rows = run_figures(runs, sums.runs, faults, status)
    wall = sum(run.seconds for run in run_rows)
    return Summary(
        task=info.task,
        robot=info.robot,
        seed=info.seed,
        rate=info.rate,
        cameras=info.cameras,
        state=status.state if status else "",
        target=status.target * max(1, len(info.tasks)) if status else 0,
        stored=sums.stored,
        given_up=sums.given_up,
        attempts=sums.plans,
        successes=sums.plans - sums.failed,
        reasons=dict(sums.reasons.most_common()),
        phases=dict(sums.phases.most_common()),
        kinds=_kinds(sums),
        yields=find_yields(sample),
        semantic_yields=find_semantic_yields(sample, info.meanings),
        failure_seconds=sums.failure_seconds,
        plan_seconds=sums.plan_seconds,
        stages=_stages(totals, stored_count=sums.stored),
        once={stage: totals[stage] for stage in ONCE if stage in totals},
        waits=sums.waits,
        durations=sums.motions(),
        step_count=info.step_count,
        byte_count=info.byte_count,
        failure_bytes=sums.failure_bytes,
        episodes=tuple(sums.listed),
        outdated=tuple(sums.outdated),
        outdated_count=sums.outdated_count,
        wall_seconds=wall,
        startup_seconds=sum(run.startup_seconds for run in run_rows),
        cores=sum(run.cores * run.seconds for run in run_rows) / wall if wall else 0.0,
        longest_episode=sums.longest,
        stage_seconds=dict.fromkeys(STAGES, 0.0) | totals,
        busy_seconds=_busy_seconds(run_rows),
        faults=dict(Counter(fault.kind for fault in faults).most_common()),
        fault_rows=tuple(faults),
        quarantined=quarantined,
        runs=run_rows,
        price_per_hour=price_per_hour,
        traffic=_traffic(folder),
    )


def _busy_seconds(runs: Iterable[RunFigures]) -> dict[str, float]:
    """Return the busy time of each device in all runs [s]."""
    totals: dict[str, float] = {}
    for run in runs:
        for device, seconds in run.busy.items():
            totals[device] = totals.get(device, 0.0) + seconds
    return totals


def _traffic(folder: Path) -> dict[str, float]:
    """Read the traffic counters of a dataset in a store; empty for a dataset in a folder."""
    if not is_remote(folder):
        return {}
    address = parse_address(address_of(folder))
    counts = read_traffic(copy_folder(address))
    return asdict(counts) | {"hit_rate": counts.hit_rate, "egress_cost": counts.egress_cost(address.scheme)}


def _kinds(sums: RowSums) -> tuple[KindYield, ...]:
    rows = (KindYield(kind=kind, attempts=count, successes=sums.good[kind]) for kind, count in sums.tried.items())
    return tuple(sorted(rows, key=lambda row: (row.successes / row.attempts, row.kind)))


def _stages(totals: dict[str, float], *, stored_count: int) -> tuple[StageTime, ...]:
    order = [stage for stage in STAGES if stage in totals] + sorted(set(totals) - set(STAGES))
    return tuple(
        StageTime(stage=stage, total=totals[stage], per_episode=totals[stage] / max(1, stored_count))
        for stage in order
        if stage not in ONCE
    )
