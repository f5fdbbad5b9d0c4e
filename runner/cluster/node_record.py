"""Records of the balance: leases, and nodes with their episodes."""

from __future__ import annotations

from dataclasses import dataclass, field

EPOCH_BITS = 32
"""Bits of a lease's number below those of the epoch."""

Item = tuple[str, int]
"""Group and index of an episode."""


@dataclass(frozen=True, kw_only=True)
class NodeLease:
    """Episodes of one group in the hands of one node."""

    number: int
    """Fence: grows with each lease, over restarts of the head as well."""
    group: str
    indices: tuple[int, ...]
    is_copy: bool = False


@dataclass(frozen=True, slots=True)
class HeldItem:
    """Hold of a node on an episode."""

    number: int
    since: float


@dataclass(slots=True)
class NodeRecord:
    """A node, as the balance sees it."""

    name: str
    slots: int
    groups: frozenset[str] | None = None
    """Groups that it can work on; None: all."""
    blocked: frozenset[str] = frozenset()
    """Groups among them that lack free memory now."""
    last_beat: float = 0.0
    is_silent: bool = False
    is_draining: bool = False
    holdings: dict[Item, HeldItem] = field(default_factory=dict)
    loaded: str = ""
    """Group whose context it has."""
    recall: int = 0
    """Episodes that it is to give back, of those that it has not begun."""
    settled_count: int = 0
    speed: float = 1.0
    """Expected over measured seconds of its episodes."""

    def can_take(self, group: str) -> bool:
        """Check whether it can work on a group."""
        return self.groups is None or group in self.groups

    def can_begin(self, group: str) -> bool:
        """Check whether it has what a group needs free now."""
        return self.can_take(group) and (group not in self.blocked or group == self.loaded)
