"""Rows of the ledger beside attempts: what becomes of episodes, faults, the workers' time, runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from nimbus.datagen.files.bounded import Count, Index, Seconds
from nimbus.datagen.store.ledger.attempt import Attempt


class EpisodeStatus(StrEnum):
    """Where an episode stands; one without a row is pending."""

    PENDING = "PENDING"
    LEASED = "LEASED"
    """A worker has it."""
    INTENT = "INTENT"
    """Its file is staged and synced, and about to get its name."""
    DONE = "DONE"
    REJECTED = "REJECTED"
    """Its last attempt failed; ``detail`` is the reason."""
    QUARANTINED = "QUARANTINED"
    """It kills workers; ``detail`` is the evidence as JSON."""


@dataclass(frozen=True, kw_only=True)
class EpisodeState:
    """Where one episode stands, by task, index and variant."""

    task: str = ""
    """Task of a dataset of several; empty in a dataset of one."""
    idx: Count
    variant: Count
    state: EpisodeStatus
    episode_id: str = ""
    """Empty until an attempt at it is known."""
    lease: Count = 0
    """How often it was handed out; never enters content."""
    owner: str = ""
    """Worker that has it."""
    stage: str = ""
    """Staged file, relative to the dataset, while its intent stands."""
    sha256: str = ""
    byte_count: Count = 0
    detail: str = ""
    """Depends on the state; of an intent the attempt as JSON."""


def place_finder(states: Iterable[EpisodeState]) -> Callable[[Attempt | EpisodeState], tuple[str, int, int]]:
    """Make the function that gives task, index and variant of a row's episode; without tasks where there is one.

    Args:
        states: Those of the dataset.
    """
    has_tasks = any(state.task for state in states)
    return lambda row: (row.task if has_tasks else "", row.idx, row.variant)


@dataclass(frozen=True, kw_only=True)
class DrawnValues:
    """Values that were drawn for an attempt: a third of its row, and read by the report alone."""

    episode_id: str
    attempt: Count
    drawn: dict[str, Any] = field(default_factory=dict)
    """See :attr:`Attempt.drawn`."""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A worker that died, hung or raised: never the result of an attempt."""

    time: Seconds
    """[s since 1970]"""
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
    """Folder of the incident, relative to the dataset."""


@dataclass(frozen=True, kw_only=True)
class TimeSpan:
    """What a worker did for a while."""

    run: Count
    worker: str
    stage: str
    idx: Index
    """Index of the episode; -1 for none."""
    begin: Seconds
    """[s since 1970]"""
    end: Seconds


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run into the dataset."""

    id: Count
    started: Seconds
    """[s since 1970]"""
    ended: Seconds = 0.0
    """0 while it runs, and for ever when it was killed."""
    state: str = "running"
    """How it ended."""
    mode: str = ""
    """``serial``, ``coupled`` or ``cell``"""
    cores: Count = 0
    workers: str = ""
    """Split it started with, for example ``1x1``."""
    wall_seconds: Seconds = 0.0
    startup_seconds: Seconds = 0.0
    settings: dict[str, Any] = field(default_factory=dict)
