"""Distribution of a job's episodes over nodes, by fenced leases. No side effects: time is an argument.

Nodes pull work. A lease contains the longest episodes of the task that the node has loaded. Its expected duration is a
fraction of the remaining duration of the job, and at most 30 s. Near the end of the job, idle nodes get episodes that
other nodes have not begun, and copies of late ones. The first result of an episode counts; all copies have the same
content, because equal inputs give equal results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heapreplace

from nimbus.runner.cluster.node_health import NodeHealth
from nimbus.runner.cluster.node_holdings import NodeHoldings
from nimbus.runner.cluster.node_record import EPOCH_BITS, HeldItem, Item, NodeLease, NodeRecord
from nimbus.runner.cluster.pending_work import ItemState, PendingWork, WorkGroup
from nimbus.runner.cluster.poison_votes import PoisonVotes

_LEASE_SECONDS = 30.0
"""Longest expected work of a lease per slot [s]. Long leases are costly: those of lost nodes are repeated, and the end
of the job waits for those of slow nodes."""
_SHARE = 2.0
"""Divisor of the remaining work per slot that gives the size of a lease (guided self-scheduling)."""
_LATE = 1.3
"""Ratio to the expected time above which an episode is copied to an idle node."""
_COPIES = 2
"""Largest number of nodes that hold an episode at once."""
_MOST_LEASED = 2000
"""Largest number of episodes in a lease; more would not fit into a message."""


class Balance(NodeHoldings):
    """Distributes the episodes of a job over nodes, which may join, leave, die or lag at any time.

    Args:
        groups: Tasks of the job.
        states: State of each episode after earlier runs, by group; all pending by default.
        cost_classes: Function from an episode's index to its cost class, by group; a single class by default.
        epoch: Number of starts of the head so far, which fences leases of earlier starts.
        lease_seconds: Longest work of a lease per slot [s].
        has_recall: Recall episodes that are not begun if another node is idle.
        has_copies: Copy late episodes to idle nodes.
    """

    def __init__(
        self,
        groups: Sequence[WorkGroup],
        *,
        states: Mapping[str, bytearray] | None = None,
        cost_classes: Mapping[str, Callable[[int], int]] | None = None,
        epoch: int = 1,
        lease_seconds: float = _LEASE_SECONDS,
        has_recall: bool = True,
        has_copies: bool = True,
    ) -> None:
        super().__init__(groups, states=states, cost_classes=cost_classes)
        self.health = NodeHealth()
        self.given_up: dict[Item, tuple[str, ...]] = {}
        """Evidence from nodes against each given-up episode."""
        self._number = epoch << EPOCH_BITS
        self._votes = PoisonVotes()
        self._lease_seconds, self._has_recall, self._has_copies = lease_seconds, has_recall, has_copies
        self._late: list[Item] = []
        self._late_until = -1.0

    # Work

    def pull(self, cell: str, idle: int, now: float, *, ahead: int = 0) -> NodeLease | None:
        """Return a lease for a node; None if there is no work for it now.

        Args:
            cell: The node.
            idle: Idle slots of the node.
            now: Time of the monotonic clock [s].
            ahead: Slots that have no work after their current episode; they get none while episodes are scarce.
        """
        node = self.nodes[cell]
        node.last_beat, node.is_silent = now, False
        if node.is_draining:
            return None
        if not (group := self._choose(node)):
            return self._idle_lease(node, idle, now)
        work = self.work[group]
        slots = self._slot_count
        wanted = idle + ahead if self.waiting > slots else idle
        if not wanted:
            return None
        if node.loaded != group:
            node.loaded = group
        each = min(self._lease_seconds, self._left_seconds / (_SHARE * slots))
        budget = wanted * each * node.speed
        indices: list[int] = []
        refused = self._votes.by(cell, group)
        while len(indices) < _MOST_LEASED and (len(indices) < wanted or budget > 0):
            if (index := work.take(without=refused)) is None:
                break
            indices.append(index)
            budget -= work.seconds(index)
            if len(indices) >= wanted and budget < work.seconds(index) / 2:
                break
        return self._lease(node, group, indices, now) if indices else self._idle_lease(node, idle, now)

    def settled(self, cell: str, number: int, group: str, index: int, now: float, *, seconds: float = 0.0) -> bool:
        """Settle an episode by a result; return False if it was settled before.

        The first valid result of any node counts.

        Args:
            cell: Node that produced the result.
            number: Number of the node's lease, which may have expired.
            group: Group of the episode.
            index: Index of the episode.
            now: Time of the monotonic clock [s].
            seconds: Time of one slot for the episode [s]; 0 if unknown.
        """
        item, node = (group, index), self.nodes.get(cell)
        work = self.work[group]
        if node:
            node.last_beat = now
        if not self._is_open(item):
            if node:
                node.holdings.pop(item, None)
            return False
        if seconds:
            expected = work.seconds(index)
            work.costs.record(work.cost_class(index), seconds)
            if node:
                node.speed += 0.1 * (min(4.0, max(0.1, expected / seconds)) - node.speed)
        if node:
            node.settled_count += 1
            self.health.record_result(cell)
        self._close(item, ItemState.SETTLED)
        return True

    def gave_back(self, cell: str, items: Iterable[Item], now: float) -> None:
        """Take back episodes that a node returns without having begun them."""
        node = self.nodes[cell]
        node.last_beat = now
        for item in items:
            if item in node.holdings:
                node.recall = max(0, node.recall - 1)
                if node.spare:
                    node.spare -= 1
                self._release(node, item, is_lost=False)

    def note_loaded(self, cell: str, group: str) -> None:
        """Record the group that a node has loaded; a restarted head does not know it."""
        node = self.nodes[cell]
        if not node.loaded and group in self.work:
            node.loaded = group

    def note_spare(self, cell: str, spare: int | None) -> None:
        """Record the number of episodes that a node can give back; episodes passed to its cells stay there."""
        self.nodes[cell].spare = spare

    def vote(self, cell: str, group: str, index: int, evidence: str) -> bool:
        """Record a node's evidence that an episode crashes workers; return True if the episode is given up.

        An episode is given up on evidence from two nodes. Once no other work is left, evidence from every present node
        that can work on the episode suffices.
        """
        item = (group, index)
        self.health.record_vote(cell, item)
        if not self._is_open(item):
            return False
        self._votes.record(item, cell, evidence)
        for holder in list(self._holders.get(item, ())):
            if holder == cell:
                self._release(self.nodes[holder], item, is_lost=True)
        return self._try_giving_up(item)

    def withdraw_votes(self, cell: str) -> None:
        """Discard the evidence from a node on which everything fails."""
        self._votes.withdraw(cell)

    def try_giving_up(self) -> list[Item]:
        """Give up all episodes against which there is sufficient evidence now; return them."""
        return [item for item in self._votes.items if self._try_giving_up(item)]

    def recall_for(self, count: int, *, by: str = "") -> dict[str, int]:
        """Request that nodes give back up to ``count`` episodes that they have not begun, fullest node first.

        Args:
            count: Number of episodes.
            by: Idle node for which they are recalled; it gives back none itself.

        Returns:
            Number of requested episodes by node.
        """
        chosen: dict[str, int] = {}
        full = [
            (-spare / node.slots, number, node)
            for number, node in enumerate(self.nodes.values())
            if node.name != by and not node.is_silent and (spare := node.recallable) > 0
        ]
        heapify(full)
        while full and count > 0:
            _, number, node = full[0]
            node.recall += 1
            chosen[node.name] = chosen.get(node.name, 0) + 1
            count -= 1
            if (spare := node.recallable) > 0:
                heapreplace(full, (-spare / node.slots, number, node))
            else:
                heappop(full)
        return chosen

    def take_recall(self, cell: str) -> int:
        """Return the number of episodes that a node must give back, and mark the request as sent."""
        node = self.nodes[cell]
        wanted, node.recall = node.recall, 0
        return wanted

    # Choices

    def _choose(self, node: NodeRecord) -> str:
        """Choose a group for a node; empty if there is none.

        Only groups of the highest priority are candidates. The group that the node has loaded is preferred; otherwise
        the one with the most remaining work per slot is chosen.
        """
        fit = [work for name, work in self.work.items() if work.left and node.can_begin(name)]
        fit = [work for work in fit if self._has_work_for(node.name, work)]
        if not fit:
            return ""
        best = max(work.group.priority for work in fit)
        fit = [work for work in fit if work.group.priority == best]
        if any(work.group.name == node.loaded for work in fit):
            return node.loaded
        crowd: dict[str, int] = {}
        for other in self.nodes.values():
            if not other.is_silent and other.name != node.name:
                crowd[other.loaded] = crowd.get(other.loaded, 0) + other.slots
        return max(fit, key=lambda work: work.left_seconds / (1 + crowd.get(work.group.name, 0))).group.name

    def _has_work_for(self, cell: str, work: PendingWork) -> bool:
        states = self._states[work.group.name]
        refused = sum(states[index] == ItemState.PENDING for index in self._votes.by(cell, work.group.name))
        return work.left > refused

    def _idle_lease(self, node: NodeRecord, idle: int, now: float) -> NodeLease | None:
        """Recall episodes for a node without work, or lease copies of late ones to it."""
        if not idle or self.done:
            return None
        if self._has_recall and self.recall_for(idle, by=node.name):
            return None
        if not self._has_copies:
            return None
        copies: list[Item] = []
        for item in self._late_items(now):
            if len(copies) == idle or (copies and copies[0][0] != item[0]):
                break
            group, index = item
            holders = self._holders.get(item, ())
            is_fit = node.can_begin(group) and index not in self._votes.by(node.name, group)
            if is_fit and node.name not in holders and 0 < len(holders) < _COPIES:
                copies.append(item)
        if not copies:
            return None
        return self._lease(node, copies[0][0], [index for _, index in copies], now, is_copy=True)

    def _late_items(self, now: float) -> Iterator[Item]:
        """Iterate over held episodes that exceed their expected time, the latest first; recomputed every 0.5 s."""
        if now > self._late_until:
            late: list[tuple[float, Item]] = []
            for item, holders in self._holders.items():
                if len(holders) == 1 and (holding := self.nodes[holders[0]].holdings.get(item)):
                    ratio = (now - holding.since) / max(1e-3, self.work[item[0]].seconds(item[1]))
                    if ratio > _LATE:
                        late.append((ratio, item))
            self._late = [item for _, item in sorted(late, reverse=True)]
            self._late_until = now + 0.5
        return iter(self._late)

    # State

    def _lease(
        self, node: NodeRecord, group: str, indices: Sequence[int], now: float, *, is_copy: bool = False
    ) -> NodeLease:
        self._number += 1
        for index in indices:
            self._hold(node, (group, index), HeldItem(self._number, now))
        if node.spare is not None:
            node.spare += len(indices)
        return NodeLease(number=self._number, group=group, indices=tuple(indices), is_copy=is_copy)

    def _close(self, item: Item, state: ItemState) -> None:
        self._votes.forget(item)
        self._finish(item, state)

    def _try_giving_up(self, item: Item) -> bool:
        # Silent nodes may never return, and a task without a fitting node never ends. Neither delays the decision.
        present = [node for node in self.nodes.values() if not node.is_draining and not node.is_silent]
        able = [node.name for node in present if node.can_take(item[0])]
        is_last = bool(able) and not self._holders.get(item) and self._has_only_votes(present)
        if not self._votes.condemn(item, able=able, is_last=is_last):
            return False
        self.given_up[item] = self._votes.evidence(item)
        self._close(item, ItemState.GIVEN_UP)
        return True

    def _has_only_votes(self, present: Sequence[NodeRecord]) -> bool:
        """Return True if there is evidence against every open episode that the present nodes can work on."""
        left = {name for name, work in self.work.items() if work.open and any(node.can_take(name) for node in present)}
        voted = sum(group in left for group, _ in self._votes.items)
        return sum(self.work[name].open for name in left) <= voted
