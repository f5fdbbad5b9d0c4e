"""Status of a cluster run: the status of a run on one machine, and additionally nodes, leases and costs."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from nimbus.datagen.store.ledger.records import Fault
from nimbus.runner.cluster.balance import Balance
from nimbus.runner.cluster.messages import Join, NodeReading
from nimbus.runner.cluster.node_holdings import SILENCE
from nimbus.runner.cluster.node_record import NodeLease
from nimbus.runner.monitor.node_details import NodeDetails
from nimbus.runner.monitor.progress import Progress
from nimbus.runner.monitor.status import LEFT_STATES, ClusterStatus, NodeStatus

_CLOCK = 60.0
"""Difference between the clocks of a node and the head above which an event is reported [s]."""
_MOST_GONE = 50
"""Largest number of departed nodes that the status lists."""


@dataclass
class _ListedNode:
    status: NodeStatus
    joined: float
    """Time of joining, on the monotonic clock [s]."""
    last_beat: float
    """Time of the last message, on the monotonic clock [s]."""
    left: float = 0.0
    """Time of leaving, on the monotonic clock [s]; 0 while the node is present."""
    before: float = 0.0
    """Duration of its earlier stays [s]."""

    def seconds(self, now: float, *, is_silent: bool) -> float:
        """Return the time for which the node is or was present [s]; a silent one may have ended at its last message."""
        return self.before + (self.left or (self.last_beat if is_silent else now)) - self.joined


class HeadStatus:
    """Computes the status of a cluster run.

    Args:
        progress: Writer of the status of the run.
        price_per_hour: Price of a node hour by price class; the class ``""`` is the default.
        shared_cores: Number of cores that all nodes share; 0 if each slot has a core of its own.
    """

    def __init__(
        self, progress: Progress, *, price_per_hour: Mapping[str, float] | None = None, shared_cores: int = 0
    ) -> None:
        self.progress = progress
        self.details = NodeDetails(progress.folder)
        self._prices = dict(price_per_hour or {})
        self._nodes: dict[str, _ListedNode] = {}
        self._leases = self._cores = 0
        self._shared_cores = shared_cores
        self._faults: Counter[str] = Counter()

    def join(self, request: Join, now: float) -> None:
        """Add a node that joined."""
        known = self._nodes.get(request.node)
        status = NodeStatus(
            name=request.node,
            host=request.host,
            pid=request.pid,
            slots=request.slots,
            price_class=request.price_class,
            stored=known.status.stored if known else 0,
        )
        self._nodes[request.node] = node = _ListedNode(status, now, now)
        if known and not known.left and now - known.last_beat <= SILENCE:  # its agent was restarted
            node.joined, node.before = known.joined, known.before
        elif known:
            node.before = known.seconds(now, is_silent=True)
        self.tell(
            f"node {request.node} on {request.host}: {request.slots} slot{'s' if request.slots != 1 else ''}",
            kind="workers",
        )
        if abs(request.clock - time.time()) > _CLOCK:
            what = (
                f"its clock differs by {request.clock - time.time():.0f} s; its times in the ledger are off by as much"
            )
            self.tell(f"node {request.node}: {what}", kind="fault")

    def note_message(self, name: str, now: float) -> None:
        """Record the time of a node's message."""
        if node := self._nodes.get(name):
            node.last_beat = now

    def read(self, name: str, reading: NodeReading) -> None:
        """Record the state reported by a node."""
        if node := self._nodes.get(name):
            node.status = replace(
                node.status,
                state=reading.state,
                resident=reading.resident_bytes,
                disk_free=reading.disk_free_bytes,
                outbox=reading.outbox_bytes,
                workers=reading.workers,
                phases=reading.phases,
                group=reading.group,
            )

    def leave(self, name: str, why: str, *, has_failed: bool, settled: int = 0) -> None:
        """Record that a node left.

        Args:
            name: Name of the node.
            why: Reason, as the node reported it.
            has_failed: The node left because it cannot work.
            settled: Number of episodes that it settled.
        """
        if node := self._nodes.get(name):
            node.left = time.monotonic()
            self.details.remove(name)
            state, rate = "failed" if has_failed else "gone", settled / max(1e-3, node.left - node.joined)
            node.status = replace(node.status, state=state, why=why, stored=settled, rate=round(rate, 4))
        self.tell(f"node {name} left: {why}", kind="fault" if has_failed else "workers")

    def leased(self, lease: NodeLease) -> None:
        """Count a lease; the first one ends the start-up phase of the run."""
        self._leases += 1
        self.progress.ready()
        if self.progress.status.activity:
            self.progress.activity("")

    def count_faults(self, node: str, rows: Sequence[Fault]) -> None:
        """Count faults of a node's cell."""
        self._faults.update(row.kind for row in rows)
        for row in rows:
            where = f" in {row.phase}" + (f" of episode {row.idx}" if row.idx >= 0 else "")
            self.tell(f"node {node}: worker {row.worker}: {row.kind}{where}: {row.detail}"[:300], kind="fault")

    def give_up(self, group: str, index: int, evidence: Sequence[str], *, variants: int) -> None:
        """Record that an episode is given up, with those of its visual variants that are not settled."""
        self.progress.update(quarantined=self.progress.status.quarantined + variants)
        self.tell(f"episode {index} of {group} given up: {'; '.join(evidence)}"[:300], kind="quarantine")

    def tell(self, text: str, *, kind: str) -> None:
        """Record an event in one line."""
        self.progress.tell(text, kind=kind)

    def update(
        self,
        balance: Balance,
        drained: Mapping[str, str],
        now: float,
        *,
        wanted_nodes: int = 0,
        doubled: int = 0,
    ) -> None:
        """Update the status.

        Args:
            balance: Balance of the job, with the nodes and their episodes.
            drained: Reasons for dismissing nodes, by name.
            now: Time of the monotonic clock [s].
            wanted_nodes: Number of nodes that the job requests.
            doubled: Number of results that arrived for settled episodes.
        """
        nodes = [self._current(node, balance, drained, now) for node in self._nodes.values()]
        gone = [node for node in nodes if node.state in LEFT_STATES][-_MOST_GONE:]
        shown = tuple(node for node in nodes if node.state not in LEFT_STATES or node in gone)
        hours: dict[str, float] = defaultdict(float)
        slot_seconds = 0.0
        for node in self._nodes.values():
            record = balance.nodes.get(node.status.name)
            seconds = node.seconds(now, is_silent=bool(record and record.is_silent))
            hours[node.status.price_class] += seconds / 3600
            slot_seconds += node.status.slots * seconds
        cost = sum(self._prices.get(name, self._prices.get("", 0.0)) * spent for name, spent in hours.items())
        status = ClusterStatus(
            leases=self._leases,
            waiting=balance.waiting,
            held=balance.held,
            wanted_nodes=wanted_nodes,
            node_hours=round(sum(hours.values()), 4),
            cost=round(cost, 4),
            useful=round(min(1.0, balance.settled_seconds / max(1e-3, slot_seconds)), 4),
            doubled=doubled,
            nodes=shown,
        )
        slots = sum(node.slots for node in nodes if node.state not in LEFT_STATES)
        self._cores = max(self._cores, min(slots, self._shared_cores or slots))  # nodes leave before the end
        self.progress.update(cluster=status, cores=max(1, self._cores), faults=dict(self._faults))
        self.details.write()

    def _current(self, node: _ListedNode, balance: Balance, drained: Mapping[str, str], now: float) -> NodeStatus:
        record = balance.nodes.get(node.status.name)
        if record is None:
            return node.status
        state = "silent" if record.is_silent else "draining" if node.status.name in drained else node.status.state
        elapsed = max(1e-3, now - node.joined)
        return replace(
            node.status,
            state=state,
            held=len(record.holdings),
            stored=record.settled_count,
            rate=round(record.settled_count / elapsed, 4),
            since_beat=round(now - node.last_beat, 1),
            why=drained.get(node.status.name, ""),
        )
