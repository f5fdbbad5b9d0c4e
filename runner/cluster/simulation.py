"""Discrete-event simulation of a job on a cluster: runs the balance of real runs under a virtual clock."""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from nimbus.runner.cluster.node_record import Item
from nimbus.runner.cluster.simulated_run import Conditions, SimulatedPolicy, SimulatedRun

_BEAT = 2.0
"""Interval between heartbeats of a node [s]."""
_POLL = 1.0
"""Time after which a node without work pulls again [s]."""
_HORIZON = 1e7
"""Simulated time after which the simulation is aborted as endless [s]."""


@dataclass(slots=True)
class _SimulatedNode:
    name: str
    slots: int
    speed: float
    born: float
    is_alive: bool = True
    free: int = 0
    queue: deque[tuple[Item, int]] = field(default_factory=deque)
    running: dict[Item, tuple[int, float, float]] = field(default_factory=dict)
    """Number of the lease, start and end [s] of each running episode."""
    loaded: str = ""
    cut_until: float = 0.0
    is_pulling: bool = False


class Simulation:
    """Simulates one run of a job.

    Args:
        policy: The balance, or another object with the same methods.
        costs: Time of each episode on a slot of speed 1, by group and index [s].
        nodes: Number of slots of each node.
        conditions: Timing and faults of the nodes.
        seed: Seed of all draws.
    """

    def __init__(
        self,
        policy: SimulatedPolicy,
        costs: dict[str, Sequence[float]],
        nodes: Sequence[int],
        *,
        conditions: Conditions | None = None,
        seed: int = 0,
    ) -> None:
        self._policy, self._costs, self._conditions = policy, costs, conditions or Conditions()
        self._random = np.random.Generator(np.random.Philox(key=seed))
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._count = self._leases = self._deaths = self._settled = self._doubled = self._born = 0
        self._now = self._head_free = self._lost = self._capacity = self._node_seconds = self._last = 0.0
        self._useful = sum(float(np.sum(list(group))) for group in costs.values())
        self._nodes: list[_SimulatedNode] = []
        for slots in nodes:
            late = self._random.random() < self._conditions.late_share
            begin = self._random.uniform(0.0, self._conditions.late_by) if late else 0.0
            node = self._make(slots)
            self._capacity += slots * node.speed
            self._at(begin, lambda node=node: self._bear(node))
        self._at(1.0, self._look)

    def run(self) -> SimulatedRun:
        """Simulate until every episode is settled.

        Raises:
            RuntimeError: The run never ends.
        """
        while not self._policy.done:
            if not self._events or self._now > _HORIZON:
                raise RuntimeError(f"{self._settled} episodes settled, and nothing happens any more")
            self._now, _, event = heapq.heappop(self._events)
            event()
        alive = sum(self._last - node.born for node in self._nodes if node.is_alive)
        return SimulatedRun(
            seconds=self._last,
            efficiency=self._useful / (self._capacity * self._last),
            settled=self._settled,
            doubled=self._doubled,
            lost_seconds=self._lost,
            leases=self._leases,
            deaths=self._deaths,
            node_seconds=self._node_seconds + alive,
        )

    def _at(self, when: float, event: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._events, (when, self._count, event))

    def _message(self, node: _SimulatedNode, then: Callable[[], None]) -> None:
        """Send a message to the head, which processes one at a time; delay it while the node is disconnected."""
        if self._now < node.cut_until:
            self._at(node.cut_until, lambda: self._message(node, then))
            return
        self._head_free = max(self._head_free, self._now) + self._conditions.head_busy
        self._at(self._head_free + self._conditions.round_trip, then)

    def _make(self, slots: int, speed: float | None = None) -> _SimulatedNode:
        self._born += 1
        if speed is None:
            is_slow = self._random.random() < self._conditions.slow_share
            speed = self._conditions.slow_speed if is_slow else 1.0
        return _SimulatedNode(f"n{self._born}", slots, speed, self._now, free=slots)

    def _bear(self, node: _SimulatedNode) -> None:
        node.born = self._now
        self._nodes.append(node)
        if math.isfinite(self._conditions.mean_life):
            self._at(self._now + self._random.exponential(self._conditions.mean_life), lambda: self._die(node))
        if self._conditions.partitions:
            self._at(self._now + self._next_partition(), lambda: self._cut(node))
        self._at(self._now + self._conditions.start, lambda: self._join(node))

    def _next_partition(self) -> float:
        return self._random.exponential(3600.0 / self._conditions.partitions)

    def _cut(self, node: _SimulatedNode) -> None:
        if node.is_alive:
            node.cut_until = self._now + self._conditions.partition_seconds
            self._at(node.cut_until + self._next_partition(), lambda: self._cut(node))

    def _join(self, node: _SimulatedNode) -> None:
        if node.is_alive:
            self._policy.join(node.name, node.slots, self._now)
            self._beat(node)
            self._pull(node)

    def _die(self, node: _SimulatedNode) -> None:
        if not node.is_alive:
            return
        node.is_alive = False
        self._deaths += 1
        self._node_seconds += self._now - node.born
        self._lost += sum((self._now - begin) * node.speed for _, begin, _ in node.running.values())
        self._at(self._now + self._conditions.noticed, lambda: self._policy.leave(node.name, is_lost=True))
        successor = self._make(node.slots, node.speed)
        self._at(self._now + self._conditions.replaced, lambda: self._bear(successor))

    def _look(self) -> None:
        self._policy.look(self._now)
        self._at(self._now + 1.0, self._look)

    def _beat(self, node: _SimulatedNode) -> None:
        if not node.is_alive:
            return
        if self._now >= node.cut_until:
            self._policy.beat(node.name, self._now, [*node.running, *(item for item, _ in node.queue)])
            back = [node.queue.pop()[0] for _ in range(min(self._policy.take_recall(node.name), len(node.queue)))]
            if back:
                self._policy.gave_back(node.name, back, self._now)
        self._at(self._now + _BEAT, lambda: self._beat(node))

    def _pull(self, node: _SimulatedNode) -> None:
        if node.is_pulling or not node.is_alive:
            return
        node.is_pulling = True
        self._message(node, lambda: self._answer(node))

    def _answer(self, node: _SimulatedNode) -> None:
        node.is_pulling = False
        if not node.is_alive:
            return
        idle = max(0, node.free - len(node.queue))
        ahead = max(0, node.slots - max(0, len(node.queue) - node.free)) if not idle else node.slots
        lease = self._policy.pull(node.name, idle, self._now, ahead=ahead)
        if lease:
            self._leases += 1
            node.queue.extend(((lease.group, index), lease.number) for index in lease.indices)
            self._fill(node)
        elif node.free:
            self._at(self._now + _POLL, lambda: self._pull(node))

    def _fill(self, node: _SimulatedNode) -> None:
        while node.free and node.queue:
            item, lease = node.queue.popleft()
            node.free -= 1
            seconds = self._costs[item[0]][item[1]] / node.speed
            if node.loaded != item[0]:
                seconds += self._conditions.load if node.loaded or self._conditions.load else 0.0
                node.loaded = item[0]
            if self._conditions.hang_share and self._random.random() < self._conditions.hang_share:
                seconds += self._conditions.hang_seconds
            node.running[item] = (lease, self._now, self._now + seconds)
            self._at(self._now + seconds, lambda item=item: self._end(node, item))
        if len(node.queue) < node.slots:
            self._pull(node)

    def _end(self, node: _SimulatedNode, item: Item) -> None:
        if not node.is_alive or item not in node.running:
            return
        lease, begin, end = node.running[item]
        node.free += 1
        self._fill(node)
        self._at(self._now + self._conditions.upload, lambda: self._upload(node, item, lease, end - begin))

    def _upload(self, node: _SimulatedNode, item: Item, lease: int, seconds: float) -> None:
        if node.is_alive:
            self._message(node, lambda: self._report(node, item, lease, seconds))

    def _report(self, node: _SimulatedNode, item: Item, lease: int, seconds: float) -> None:
        node.running.pop(item, None)
        if self._policy.settled(node.name, lease, *item, self._now, seconds=seconds):
            self._settled += 1
            self._last = self._now
        else:
            self._doubled += 1
            self._lost += seconds * node.speed
