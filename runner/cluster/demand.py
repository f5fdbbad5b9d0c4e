"""Number of nodes that a job requests, computed from its remaining work. No side effects."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

HORIZON = 3600.0
"""Target duration of a job [s]; reached if the bounds allow enough nodes."""
_LEAST_HORIZON = 600.0
"""Shortest remaining time for which nodes are counted [s]; a node that starts later contributes little."""


@dataclass(frozen=True, kw_only=True)
class NodeBounds:
    """Bounds on the number of nodes of a job."""

    least: int
    most: int


class NodeDemand:
    """Number of nodes that a job requests while it runs.

    Args:
        bounds: Bounds on the number; None if the job takes all available nodes.
    """

    def __init__(self, bounds: NodeBounds | None) -> None:
        self._bounds = bounds
        self._node_slots = 0.0
        """Mean number of slots of the last present nodes; kept when all nodes are gone, so that the demand stays the
        same."""
        self._started: float | None = None
        self.wanted = bounds.least if bounds else 0
        """Number of nodes that the job requests; 0 without bounds, and once no work is left."""

    def update(self, left_seconds: float, slots: Collection[int], now: float) -> None:
        """Compute :attr:`wanted` from the remaining work.

        Args:
            left_seconds: Time that the remaining work takes on one slot [s].
            slots: Number of slots of each present node.
            now: Time of the monotonic clock [s].
        """
        if self._bounds is None:
            return
        if self._started is None:
            self._started = now
        if slots:
            self._node_slots = sum(slots) / len(slots)
        if not self._node_slots and left_seconds > 0:
            self.wanted = self._bounds.least  # the size of a node is unknown until one joins
            return
        horizon = time_left(now - self._started)
        node_slots = max(1, round(self._node_slots))
        self.wanted = wanted_nodes(left_seconds, node_slots=node_slots, bounds=self._bounds, horizon=horizon)


def wanted_nodes(left_seconds: float, *, node_slots: int, bounds: NodeBounds, horizon: float) -> int:
    """Return the number of nodes that finish the rest of a job in time, limited by bounds.

    Args:
        left_seconds: Time that the remaining work takes on one slot [s].
        node_slots: Number of slots of a node.
        bounds: Bounds on the result; a job without remaining work needs no node.
        horizon: Time until the end of the job [s].
    """
    if left_seconds <= 0:
        return 0
    enough = math.ceil(left_seconds / (node_slots * horizon))
    return min(bounds.most, max(bounds.least, enough))


def time_left(elapsed: float) -> float:
    """Return the time until the targeted end of a job that began ``elapsed`` [s] ago [s]."""
    return max(_LEAST_HORIZON, HORIZON - elapsed)
