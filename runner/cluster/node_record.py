"""Records of the balance: leases, and nodes with their episodes."""

from __future__ import annotations

from dataclasses import dataclass, field

EPOCH_BITS = 32
"""Number of bits of a lease's number below those of the epoch."""

Item = tuple[str, int]
"""Group and index of an episode."""


@dataclass(frozen=True, kw_only=True)
class NodeLease:
    """Episodes of one group leased to one node."""

    number: int
    """Fencing token, which grows with each lease, also over restarts of the head."""
    group: str
    indices: tuple[int, ...]
    is_copy: bool = False


@dataclass(frozen=True, slots=True)
class HeldItem:
    """Assignment of an episode to a node."""

    number: int
    since: float


@dataclass(slots=True)
class NodeRecord:
    """Node in the balance."""

    name: str
    slots: int
    groups: frozenset[str] | None = None
    """Groups that it can work on; None for all."""
    blocked: frozenset[str] = frozenset()
    """Groups among them that currently lack free memory."""
    last_beat: float = 0.0
    is_silent: bool = False
    is_draining: bool = False
    holdings: dict[Item, HeldItem] = field(default_factory=dict)
    loaded: str = ""
    """Group whose context it has loaded."""
    recall: int = 0
    """Number of episodes to give back, of those not begun."""
    spare: int | None = None
    """Number of episodes that it can give back, as it reported; None if it did not."""
    settled_count: int = 0
    speed: float = 1.0
    """Ratio of expected to measured time of its episodes."""

    @property
    def recallable(self) -> int:
        """Number of episodes that it has not begun and is not asked for, as far as is known."""
        most = len(self.holdings) - self.slots
        return (most if self.spare is None else min(self.spare, most)) - self.recall

    def can_take(self, group: str) -> bool:
        """Return True if it can work on a group."""
        return self.groups is None or group in self.groups

    def can_begin(self, group: str) -> bool:
        """Return True if it has the free resources that a group needs."""
        return self.can_take(group) and (group not in self.blocked or group == self.loaded)
