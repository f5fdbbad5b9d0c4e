"""Number of nodes that a job wants. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

HORIZON = 3600.0
"""[s] from its start in which a job is to end, where its bounds allow it."""
_LEAST_HORIZON = 600.0
"""[s] Shortest time that nodes are counted for: one that starts later than that before the end helps little."""


@dataclass(frozen=True, kw_only=True)
class NodeBounds:
    """Fewest and most nodes of a job."""

    least: int
    most: int


def wanted_nodes(left_seconds: float, *, node_slots: int, bounds: NodeBounds, horizon: float) -> int:
    """Return how many nodes end the rest of a job within a horizon, within bounds.

    Args:
        left_seconds: [s] of one slot that the rest takes.
        node_slots: Slots of a node.
        bounds: Fewest and most; a job without work wants no node.
        horizon: [s]
    """
    if left_seconds <= 0:
        return 0
    enough = math.ceil(left_seconds / (node_slots * horizon))
    return min(bounds.most, max(bounds.least, enough))


def time_left(elapsed: float) -> float:
    """Return the horizon of a job that began ``elapsed`` [s] ago [s]."""
    return max(_LEAST_HORIZON, HORIZON - elapsed)
