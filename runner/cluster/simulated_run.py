"""Interfaces of the cluster simulation: the simulated policy, the conditions of the nodes, and the result."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from nimbus.runner.cluster.node_record import Item, NodeLease


class SimulatedPolicy(Protocol):
    """Methods of :class:`Balance` that the simulation calls; they are documented there."""

    def join(self, cell: str, slots: int, now: float) -> None:
        """Add a node."""
        ...

    def pull(self, cell: str, idle: int, now: float, *, ahead: int = 0) -> NodeLease | None:
        """Hand out a lease."""
        ...

    def beat(self, cell: str, now: float, held: Iterable[Item] | None = None) -> None:
        """Process a heartbeat."""
        ...

    def settled(self, cell: str, number: int, group: str, index: int, now: float, *, seconds: float = 0.0) -> bool:
        """Settle an episode."""
        ...

    def gave_back(self, cell: str, items: Iterable[Item], now: float) -> None:
        """Take back episodes not begun."""
        ...

    def leave(self, cell: str, *, is_lost: bool = False) -> None:
        """Remove a node."""
        ...

    def look(self, now: float) -> list[str]:
        """Take back the episodes of silent nodes."""
        ...

    def take_recall(self, cell: str) -> int:
        """Return the number of episodes that a node must give back."""
        ...

    @property
    def done(self) -> bool:
        """True if all episodes are settled or given up."""
        ...


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """Timing and faults of the simulated nodes; all times are in seconds."""

    start: float = 10.0
    """Time from the start of a node to its first pull."""
    round_trip: float = 0.003
    """Network delay between a request and its answer."""
    head_busy: float = 0.0007
    """CPU time of the head per message; the head processes one message at a time."""
    upload: float = 1.0
    """Time from the end of an episode to its report; meanwhile, the slot works on the next episode."""
    load: float = 0.0
    """Time to load another group."""
    mean_life: float = math.inf
    """Mean lifetime of a node; lifetimes are exponentially distributed."""
    noticed: float = 16.0
    """Time from the death of a node to its detection by the head."""
    replaced: float = 120.0
    """Time from the death of a node to the start of its successor."""
    slow_share: float = 0.0
    """Fraction of nodes that are slow."""
    slow_speed: float = 0.4
    """Speed of slow nodes, relative to the others."""
    late_share: float = 0.0
    """Fraction of nodes that start late, by up to ``late_by``."""
    late_by: float = 600.0
    partitions: float = 0.0
    """Network partitions per node and hour; a disconnected node continues to work, and reports afterwards."""
    partition_seconds: float = 90.0
    hang_share: float = 0.0
    """Fraction of attempts that hang until the watchdog ends them after ``hang_seconds``."""
    hang_seconds: float = 60.0


FAULTY = Conditions(
    mean_life=6 * 3600.0, slow_share=0.03, late_share=0.1, partitions=0.5, hang_share=0.001, late_by=60.0
)
"""Unfavorable conditions: nodes with a mean lifetime of six hours, 3 % of them slow, 10 % late, partitions and
hangs."""


@dataclass(frozen=True, kw_only=True)
class SimulatedRun:
    """Result of a simulation."""

    seconds: float
    """Time until the last episode was settled."""
    efficiency: float
    """Useful work divided by the capacity: slots × speed × time; start-up and the time of dead nodes count as loss."""
    settled: int
    """Number of settled episodes."""
    doubled: int
    """Number of duplicate results, which were dropped."""
    lost_seconds: float
    """Work of nodes that died, and of duplicate results."""
    leases: int
    deaths: int
    node_seconds: float
    """Sum of the lifetimes of all nodes, which determines the cost."""
