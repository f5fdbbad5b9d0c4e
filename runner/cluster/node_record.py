"""Records of the balance: leases, and nodes with the episodes that they hold."""

from __future__ import annotations

from dataclasses import dataclass, field

EPOCH_BITS = 32
"""Number of low bits of a lease's number that count leases; the bits above them contain the epoch."""

Item = tuple[str, int]
"""Group and index of an episode."""


@dataclass(frozen=True, kw_only=True)
class NodeLease:
    """Episodes of one group leased to one node."""

    number: int
    """Fencing token, which grows with each lease, also across restarts of the head."""
    group: str
    indices: tuple[int, ...]
    is_copy: bool = False
    """True if other nodes hold the same episodes."""


@dataclass(frozen=True, slots=True)
class HeldItem:
    """Assignment of an episode to a node."""

    number: int
    """Number of the lease; 0 if only the node's heartbeat named the episode."""
    since: float
    """Time of the assignment, on the monotonic clock [s]."""


@dataclass(slots=True)
class NodeRecord:
    """Node in the balance."""

    name: str
    slots: int
    groups: frozenset[str] | None = None
    """Groups that the node can work on; None for all."""
    blocked: frozenset[str] = frozenset()
    """Groups whose needs exceed the node's free resources now."""
    last_beat: float = 0.0
    is_silent: bool = False
    is_draining: bool = False
    holdings: dict[Item, HeldItem] = field(default_factory=dict)
    loaded: str = ""
    """Group that the node has loaded."""
    recall: int = 0
    """Number of episodes whose return is requested with the next heartbeat."""
    spare: int | None = None
    """Number of episodes that the node can give back, from its last heartbeat; None if it did not report it."""
    settled_count: int = 0
    speed: float = 1.0
    """Ratio of the expected to the measured time of the node's episodes, averaged over recent ones."""

    @property
    def recallable(self) -> int:
        """Estimated number of episodes that the node has not begun and whose return is not requested yet."""
        most = len(self.holdings) - self.slots
        return (most if self.spare is None else min(self.spare, most)) - self.recall

    def can_take(self, group: str) -> bool:
        """Return True if the node can work on a group."""
        return self.groups is None or group in self.groups

    def can_begin(self, group: str) -> bool:
        """Return True if the node can work on a group, and has loaded it or has the free resources for it now."""
        return self.can_take(group) and (group not in self.blocked or group == self.loaded)
