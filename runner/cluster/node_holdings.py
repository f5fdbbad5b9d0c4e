"""Record of the episodes that each node holds; those of silent nodes are taken back. No side effects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from nimbus.runner.cluster.node_record import HeldItem, Item, NodeRecord
from nimbus.runner.cluster.pending_work import ItemState, PendingWork, WorkGroup

SILENCE = 30.0
"""Time without a message after which a node's leases are taken back [s]."""


class NodeHoldings:
    """Nodes of a job, the episodes that they hold, and the state of all episodes.

    Args:
        groups: Tasks of the job.
        states: State of each episode after earlier runs, by group; all pending by default.
        cost_classes: Function from an episode's index to its cost class, by group; a single class by default.
    """

    def __init__(
        self,
        groups: Sequence[WorkGroup],
        *,
        states: Mapping[str, bytearray] | None = None,
        cost_classes: Mapping[str, Callable[[int], int]] | None = None,
    ) -> None:
        classes = {
            group.name: {"cost_class": given} for group in groups if (given := (cost_classes or {}).get(group.name))
        }
        self._states = {group.name: (states or {}).get(group.name) or bytearray(group.count) for group in groups}
        self.work = {
            group.name: PendingWork(group, self._states[group.name], **classes.get(group.name, {})) for group in groups
        }
        self.nodes: dict[str, NodeRecord] = {}
        self._holders: dict[Item, list[str]] = {}
        self._left = sum(work.open for work in self.work.values())

    def join(self, cell: str, slots: int, now: float, *, groups: Iterable[str] | None = None) -> None:
        """Register a node.

        A restarted node keeps its episodes until its next heartbeat; those that the heartbeat omits are taken back.

        Args:
            cell: Name of the node.
            slots: Number of slots of the node.
            now: Time of the monotonic clock [s].
            groups: Groups that the node can work on; None for all.
        """
        known = self.nodes.get(cell)
        record = NodeRecord(cell, slots, None if groups is None else frozenset(groups), last_beat=now)
        if known:
            record.holdings, record.settled_count, record.is_draining = (
                known.holdings,
                known.settled_count,
                known.is_draining,
            )
            record.speed = known.speed
        self.nodes[cell] = record

    def beat(self, cell: str, now: float, held: Iterable[Item] | None = None) -> None:
        """Process a heartbeat: take back the node's episodes that it omits, and record those that it adds."""
        node = self.nodes[cell]
        node.last_beat, node.is_silent = now, False
        if held is None:
            return
        named = set(held)
        for item in [item for item in node.holdings if item not in named]:
            self._release(node, item, is_lost=False)
        for item in named - node.holdings.keys():
            if self._is_open(item):
                self.work[item[0]].claim(item[1])
                self._hold(node, item, HeldItem(0, now))

    def leave(self, cell: str, *, is_lost: bool = False) -> None:
        """Remove a node and take back its episodes."""
        if node := self.nodes.pop(cell, None):
            for item in list(node.holdings):
                self._release(node, item, is_lost=is_lost)

    def drain(self, cell: str) -> None:
        """Exclude a node from further leases."""
        self.nodes[cell].is_draining = True

    def block(self, cell: str, groups: Iterable[str]) -> None:
        """Exclude a node from leases of some groups: it has not loaded them, and lacks what they need."""
        self.nodes[cell].blocked = frozenset(groups)

    def has_work_for(self, cell: str) -> bool:
        """Return True if there are open episodes that a node can work on."""
        return any(work.open for name, work in self.work.items() if self.nodes[cell].can_take(name))

    def look(self, now: float) -> list[str]:
        """Take back the episodes of silent nodes; return the nodes that fell silent since the last call."""
        silent = [node for node in self.nodes.values() if not node.is_silent and now - node.last_beat > SILENCE]
        for node in silent:
            node.is_silent = True
            for item in list(node.holdings):
                self._release(node, item, is_lost=True)
        return [node.name for node in silent]

    def others(self, group: str, index: int, *, than: str = "") -> list[str]:
        """Return the nodes that hold an episode, except ``than``."""
        return [name for name in self._holders.get((group, index), ()) if name != than]

    def is_settled(self, group: str, index: int) -> bool:
        """Return True if an episode is settled or given up."""
        return not self._is_open((group, index))

    @property
    def waiting(self) -> int:
        """Number of open episodes that no node holds."""
        return sum(work.left for work in self.work.values())

    @property
    def held(self) -> int:
        """Number of episodes held by nodes."""
        return len(self._holders)

    @property
    def open_seconds(self) -> float:
        """Time that all open episodes are expected to take on one slot [s]."""
        return sum(work.open * work.costs.mean_seconds for work in self.work.values())

    @property
    def settled_seconds(self) -> float:
        """Slot time spent on the episodes that were settled since this start of the head [s]."""
        return sum(work.costs.total_seconds for work in self.work.values())

    @property
    def done(self) -> bool:
        """True if all episodes are settled or given up."""
        return not self._left

    def _hold(self, node: NodeRecord, item: Item, holding: HeldItem) -> None:
        node.holdings[item] = holding
        holders = self._holders.setdefault(item, [])
        if node.name not in holders:
            holders.append(node.name)

    def _release(self, node: NodeRecord, item: Item, *, is_lost: bool) -> None:
        node.holdings.pop(item, None)
        holders = self._holders.get(item, [])
        if node.name in holders:
            holders.remove(node.name)
        if not holders:
            self._holders.pop(item, None)
            if self._is_open(item):
                self.work[item[0]].put_back(item[1], is_lost=is_lost)

    def _finish(self, item: Item, state: ItemState) -> None:
        """Close an episode, and remove it from all nodes that hold it."""
        self.work[item[0]].settle(item[1], state)
        self._left -= 1
        for name in self._holders.pop(item, ()):
            self.nodes[name].holdings.pop(item, None)

    def _is_open(self, item: Item) -> bool:
        group, index = item
        states = self._states.get(group)
        return states is not None and index < len(states) and states[index] in (ItemState.PENDING, ItemState.HELD)

    @property
    def _slot_count(self) -> int:
        return max(1, sum(node.slots for node in self.nodes.values() if not node.is_silent and not node.is_draining))

    @property
    def _left_seconds(self) -> float:
        return sum(work.left_seconds for work in self.work.values())
