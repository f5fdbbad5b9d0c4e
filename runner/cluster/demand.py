"""Number of nodes requested by a job. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

HORIZON = 3600.0
"""Target duration of a job, if its bounds allow it [s]."""
_LEAST_HORIZON = 600.0
"""Shortest horizon for counting nodes [s]; a node that starts less than this before the end helps little."""


@dataclass(frozen=True, kw_only=True)
class NodeBounds:
    """Bounds on the number of nodes of a job."""

    least: int
    most: int


def wanted_nodes(left_seconds: float, *, node_slots: int, bounds: NodeBounds, horizon: float) -> int:
    """Return the number of nodes that finish the rest of a job within a horizon, within bounds.

    Args:
        left_seconds: Remaining work on one slot [s].
        node_slots: Slots of a node.
        bounds: Bounds; a job without work needs no node.
        horizon: [s]
    """
    if left_seconds <= 0:
        return 0
    enough = math.ceil(left_seconds / (node_slots * horizon))
    return min(bounds.most, max(bounds.least, enough))


def time_left(elapsed: float) -> float:
    """Return the horizon [s] of a job that began ``elapsed`` [s] ago."""
    return max(_LEAST_HORIZON, HORIZON - elapsed)
