"""Rows of the ledger other than attempts: episode states, faults, worker time and runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from nimbus.datagen.files.bounded import Count, Index, Seconds
from nimbus.datagen.store.ledger.attempt import Attempt, Digest

_INCIDENT = re.compile(r"incidents/[A-Za-z0-9_][A-Za-z0-9_.-]*")
"""Form of an incident's path. Nodes copy its folder, and reports link to it."""


class EpisodeStatus(StrEnum):
    """Status of an episode; one without a row is pending."""

    PENDING = "PENDING"
    LEASED = "LEASED"
    """Leased to a worker."""
    INTENT = "INTENT"
    """Staged and synced, about to be published."""
    DONE = "DONE"
    REJECTED = "REJECTED"
    """Last attempt failed; ``detail`` is the reason."""
    QUARANTINED = "QUARANTINED"
    """Excluded because workers die while they make it; ``detail`` is the evidence as JSON."""


@dataclass(frozen=True, kw_only=True)
class EpisodeState:
    """State of one episode, identified by task, index and variant."""

    task: str = ""
    """Name of the task in a dataset of several tasks; empty in a dataset of one task."""
    idx: Count
    variant: Count
    state: EpisodeStatus
    episode_id: str = ""
    """Id of the episode; empty until its first attempt is known."""
    lease: Count = 0
    """Number of leases so far; never enters content."""
    owner: str = ""
    """Worker that holds the lease."""
    stage: str = ""
    """Staged file, relative to the dataset, while its intent is open."""
    sha256: Digest = ""
    byte_count: Count = 0
    detail: str = ""
    """Further data by status; for an intent the attempt as JSON."""


def place_finder(states: Iterable[EpisodeState]) -> Callable[[Attempt | EpisodeState], tuple[str, int, int]]:
    """Return a function from a row to its task, index and variant; the task is empty in a dataset of one task.

    Args:
        states: States of the dataset's episodes.
    """
    has_tasks = any(state.task for state in states)
    return lambda row: (row.task if has_tasks else "", row.idx, row.variant)


@dataclass(frozen=True, kw_only=True)
class DrawnValues:
    """Drawn values of an attempt, in a separate table: they are a third of a row, and only the report reads them."""

    episode_id: str
    attempt: Count
    drawn: dict[str, Any] = field(default_factory=dict)
    """Drawn values, as in :attr:`Attempt.drawn`."""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """Worker that died, hung or raised; never the result of an attempt."""

    time: Seconds
    """Time of the fault [s since 1970]."""
    run: Count
    worker: str
    kind: str
    """``killed``, ``hang``, ``exception``, …"""
    phase: str = ""
    idx: Index = -1
    """Index of the episode; -1 for none."""
    lease: Count = 0
    detail: str = ""
    incident: str = ""
    """Folder of the incident, relative to the dataset; empty if there is none."""

    def __post_init__(self) -> None:
        if self.incident and not _INCIDENT.fullmatch(self.incident):
            raise ValueError(f"{self.incident[:200]!a} is not the path of an incident, incidents/NAME")


@dataclass(frozen=True, kw_only=True)
class TimeSpan:
    """Activity of a worker over an interval."""

    run: Count
    worker: str
    stage: str
    idx: Index
    """Index of the episode; -1 for none."""
    begin: Seconds
    """Start of the interval [s since 1970]."""
    end: Seconds


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run into the dataset."""

    id: Count
    started: Seconds
    """Start of the run [s since 1970]."""
    ended: Seconds = 0.0
    """End of the run [s since 1970]; 0 while it runs, or if it was killed."""
    state: str = "running"
    """``running``, or the result of the run."""
    mode: str = ""
    """``serial``, ``coupled`` or ``cell``."""
    cores: Count = 0
    workers: str = ""
    """Initial split, for example ``1x1``."""
    wall_seconds: Seconds = 0.0
    startup_seconds: Seconds = 0.0
    busy: dict[str, Seconds] = field(default_factory=dict)
    """Time after start-up during which each GPU, by UUID, and the disk (``disk``) were busy [s]."""
    settings: dict[str, Any] = field(default_factory=dict)
