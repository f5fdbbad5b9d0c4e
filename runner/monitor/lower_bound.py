"""Shortest time in which measured work can be done, and the resource that determines it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

CORES = "cores"
LONGEST_EPISODE = "longest episode"
_SHOWN = 12
"""Number of characters of a GPU's UUID that identify it on a screen."""


@dataclass(frozen=True, kw_only=True)
class LowerBound:
    """Shortest time of the measured work."""

    seconds: float
    resource: str
    """``cores``, ``longest episode``, ``disk``, or the UUID of a GPU; empty when nothing was measured."""

    @property
    def name(self) -> str:
        """Short name of the resource, for screens."""
        return self.resource[:_SHOWN] if self.resource.startswith(("GPU-", "MIG-")) else self.resource


def find_bound(
    cpu_seconds: float, *, cores: float, longest_episode: float, busy: Mapping[str, float] | None = None
) -> LowerBound:
    """Return the largest of the times that the resources need for the work.

    Args:
        cpu_seconds: CPU time of all work [s].
        cores: Number of cores, which share the work evenly.
        longest_episode: CPU time of the longest episode [s], whose steps run on one core.
        busy: Time during which each GPU, by UUID, and the disk were busy [s].
    """
    needs = {CORES: cpu_seconds / max(1.0, cores), LONGEST_EPISODE: longest_episode, **(busy or {})}
    resource = max(needs, key=lambda name: needs[name])
    seconds = needs[resource]
    return LowerBound(seconds=seconds, resource=resource if seconds > 0 else "")
