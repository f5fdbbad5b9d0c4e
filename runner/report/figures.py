"""Figures of the runs into a dataset, including killed ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from nimbus.datagen.store.ledger.records import Fault, Run
from nimbus.runner.monitor.status import Status
from nimbus.runner.report.row_sums import RunSums


@dataclass(frozen=True, kw_only=True)
class RunFigures:
    """Figures of one run."""

    id: int
    mode: str
    state: str
    """Result; ``killed`` for a run without one."""
    started: float
    """Start of the run [s since 1970]."""
    seconds: float
    """Duration [s]; for a killed run, up to its last record."""
    startup_seconds: float
    cores: int
    workers: str
    """Numbers of planners and renderers at the start."""
    stored: int
    faults: int
    busy: dict[str, float] = field(default_factory=dict)
    """Time after start-up during which each GPU, by UUID, and the disk were busy [s]."""
    reach: dict[str, Any] = field(default_factory=dict)
    """Reach maps of the task's regions; see ``report.table``."""


def run_figures(
    runs: list[Run], sums: list[RunSums], faults: list[Fault], status: Status | None
) -> tuple[RunFigures, ...]:
    """Return the figures of every run, in order.

    Args:
        runs: Runs in the ledger.
        sums: Sums over the attempts that ended in each run.
        faults: Faults in the ledger.
        status: Status of the last run, which may continue.
    """
    rows = []
    for run, mine, following in zip(runs, sums, [*runs, None][1:], strict=True):
        told = status if status and following is None and not run.ended else None
        known = [*([mine.last] if mine.last else []), *(fault.time for fault in faults if fault.run == run.id)]
        last = max((*known, told.updated if told else 0.0), default=run.started)
        rows.append(
            RunFigures(
                id=run.id,
                mode=run.mode,
                state=run.state if run.ended else (told.state if told else "killed"),
                started=run.started,
                seconds=run.wall_seconds if run.ended else max(0.0, last - run.started),
                startup_seconds=run.startup_seconds or (told.startup_seconds if told else 0.0),
                cores=run.cores,
                workers=run.workers,
                stored=mine.stored,
                faults=sum(fault.run == run.id for fault in faults),
                busy=run.busy or (told.busy_times if told else {}),
                reach=run.settings.get("reach", {}),
            )
        )
    return tuple(rows)
