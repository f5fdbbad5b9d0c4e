"""What the queue of a run gives out and takes in: plain values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

Place: TypeAlias = int | str
"""Place of a waiting plan: a shared slot, or the path of a spill file."""


class Role(StrEnum):
    """What a worker does."""

    PLANNER = "planner"
    RENDERER = "renderer"


class Settled(StrEnum):
    """How an episode ended for good."""

    STORED = "stored"
    REJECTED = "rejected"


@dataclass(frozen=True, kw_only=True, slots=True)
class Missing:
    """An index of which something is to be made."""

    index: int
    variants: tuple[int, ...]
    stored_plan: str = ""
    """File of a stored variant, whose plan is to be shown."""
    stored_attempt: int = 0
    """Number of the attempt in that file."""
    leases: int = 0
    """How often it was handed out before this run; numbers go on from there."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Lease:
    """An index in the hands of one worker."""

    index: int
    number: int
    """Grows with every time that the index is handed out, for planning or for rendering."""
    role: Role
    worker: int
    variants: tuple[int, ...]
    """Those that are not settled yet."""
    place: Place | None = None
    """The plan to be rendered; None for one who plans, or who does everything."""
    stored_plan: str = ""
    stored_attempt: int = 0
    is_isolated: bool = False
    """It is for a worker that has done nothing before."""


@dataclass(frozen=True, kw_only=True)
class Counts:
    """How many are where; indices, but for ``stored`` and ``rejected``, which are variants."""

    pending: int
    planning: int
    planned: int
    rendering: int
    isolated: int
    """Pending or planned, and not counted there: they wait for a worker that has done nothing yet."""
    settled: int
    quarantined: int
    stored: int
    rejected: int
