"""Values that the work queue takes and returns."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

Place: TypeAlias = int | str
"""Location of a waiting plan: a shared slot, or the path of a spill file."""


class Role(StrEnum):
    """Role of a worker."""

    PLANNER = "planner"
    RENDERER = "renderer"


class Settled(StrEnum):
    """Final outcome of an episode."""

    STORED = "stored"
    REJECTED = "rejected"


@dataclass(frozen=True, kw_only=True, slots=True)
class Missing:
    """Index with missing variants."""

    index: int
    variants: tuple[int, ...]
    stored_plan: str = ""
    """File of a stored variant whose plan is to be rendered."""
    stored_attempt: int = 0
    """Number of the attempt in that file."""
    leases: int = 0
    """Number of leases before this run; numbering continues from there."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Lease:
    """Right of one worker to work on an index."""

    index: int
    number: int
    """Number that grows with each lease of the index, for planning or rendering."""
    role: Role
    worker: int
    variants: tuple[int, ...]
    """Variants that are not settled yet."""
    place: Place | None = None
    """Location of the plan to render; None for planning, or if one worker both plans and renders."""
    stored_plan: str = ""
    stored_attempt: int = 0
    is_isolated: bool = False
    """True if only a fresh worker may take the lease."""


@dataclass(frozen=True, kw_only=True)
class Counts:
    """Number of indices by state; ``stored`` and ``rejected`` count variants."""

    pending: int
    planning: int
    planned: int
    rendering: int
    isolated: int
    """Pending or planned indices that wait for a fresh worker; not counted in ``pending`` and ``planned``."""
    settled: int
    quarantined: int
    stored: int
    rejected: int
