"""Head of a cluster: leases episodes to nodes and commits their results. A state machine without clock or sockets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from nimbus.datagen.errors import InputError, StorageError
from nimbus.datagen.files.codec import to_json
from nimbus.runner.cluster.admission import Admission
from nimbus.runner.cluster.balance import Balance
from nimbus.runner.cluster.dataset_entry import DatasetEntry
from nimbus.runner.cluster.demand import NodeDemand
from nimbus.runner.cluster.head_status import HeadStatus
from nimbus.runner.cluster.job import ClusterJob
from nimbus.runner.cluster.messages import (
    Answer,
    Beat,
    Beaten,
    Description,
    Details,
    Done,
    Faults,
    Finished,
    GiveBack,
    Join,
    JoinRefused,
    Leased,
    LeaseRequest,
    Leave,
    NoLease,
    Report,
    Reported,
    Request,
    SignatureRequest,
    Signed,
    Unknown,
    Vote,
)
from nimbus.runner.cluster.signing import is_allowed

_POLL = 1.0
"""Time after which a node without work pulls again [s]."""
_ALIVE = 10.0
"""Time since the last message up to which a node counts as alive when surplus nodes are dismissed [s]."""
_GROUP = 64
"""Number of waiting episodes that triggers a commit."""
_GROUP_WAIT = 0.1
"""Longest time that a report waits for a commit [s]."""
_UNSTORABLE = (ValueError, OverflowError)
"""Errors of libraries at values that they cannot store; the types of messages should refuse such values before."""

Reply = Callable[[Answer], None]
Refuse = Callable[[], None]
"""Ends the connection of a request without an answer."""


@dataclass
class _ReportQueue:
    """Reports waiting for the next commit."""

    reports: list[tuple[Report, Reply, Refuse]] = field(default_factory=list)
    since: float = 0.0

    @property
    def count(self) -> int:
        return sum(len(report.episodes) for report, _, _ in self.reports)


class Head:
    """Answers the messages of nodes: hands out leases and commits results.

    Args:
        job: Job of the cluster.
        entries: Opened dataset of each task, by name.
        balance: Balance of the job, in which the episodes of earlier runs are already settled.
        status: Status of the run.
        epoch: Number of the head's current start; it grows with each restart.
    """

    def __init__(
        self, job: ClusterJob, entries: dict[str, DatasetEntry], balance: Balance, status: HeadStatus, *, epoch: int
    ) -> None:
        self.job, self.balance, self.epoch = job, balance, epoch
        self.status = status
        self.failure = ""
        """Reason why the last node left or was refused, if it cannot work; empty once another node joins."""
        self._entries = entries
        self._tasks = {task.name: task for task in job.tasks}
        self._waiting = _ReportQueue()
        self._demand = NodeDemand(job.bounds)
        self._drained: dict[str, str] = {}
        """Reasons for dismissing nodes, by name."""
        self._is_stopping = ""
        self._admission = Admission(job, {name: entry.upload_place for name, entry in entries.items()}, epoch=epoch)
        self._unwritten: list[tuple[str, int]] = []
        """Episodes given up while the disk was full."""

    def take(self, request: Request, reply: Reply, now: float, *, refuse: Refuse = lambda: None) -> None:
        """Process a request; a report is answered by :meth:`commit`, any other request at once.

        Args:
            request: The request.
            reply: Sends the answer.
            now: Time of the monotonic clock [s].
            refuse: Ends the connection; called for a report that cannot be committed.

        Raises:
            ValueError: The request names a task of another job, or has rows of another episode.
        """
        self._admission.check_content(request)
        if isinstance(request, Join):
            reply(self._join(request, now))
        elif request.node not in self.balance.nodes:
            self._note_unfit(request)
            reply(Unknown())
        elif isinstance(request, Report):
            if not self._waiting.reports:
                self._waiting.since = now
            self._waiting.reports.append((request, reply, refuse))
            self.status.note_message(request.node, now)
        else:
            self.status.note_message(request.node, now)
            reply(self._answer(request, now))

    def commit_due(self, now: float) -> bool:
        """Return True if it is time to commit the waiting reports."""
        if not self._waiting.reports:
            return False
        return self._waiting.count >= _GROUP or now >= self._waiting.since + _GROUP_WAIT

    def commit(self, now: float) -> None:
        """Commit all waiting reports, then answer them: an answered report is durable.

        If the values of a report cannot be stored, each report is committed alone, and only the connection of that
        one ends.
        """
        reports, self._waiting = self._waiting.reports, _ReportQueue()
        try:
            self._commit(reports, now)
        except _UNSTORABLE:
            for one in reports:
                try:
                    self._commit([one], now)
                except _UNSTORABLE as error:
                    report, _, refuse = one
                    self.status.tell(f"node {report.node}: a report cannot be stored: {error}"[:300], kind="fault")
                    refuse()
        self._forget_missing()

    def _commit(self, reports: Sequence[tuple[Report, Reply, Refuse]], now: float) -> None:
        for name, entry in self._entries.items():
            own = [report for report, _, _ in reports if {each.group for each in report.episodes} == {name}]
            infos = [(report.node, report.info) for report in own if report.info]
            mine = [(report.node, each) for report, _, _ in reports for each in report.episodes if each.group == name]
            if mine:
                try:
                    entry.enter(mine, infos, self.balance, now)
                except StorageError as error:
                    self.status.tell(str(error), kind="disk")
                    self._forget_missing()
                    for _, reply, _ in reports:
                        reply(Reported(is_full=True))
                    return
        for report, reply, _ in reports:
            names = {(each.group, each.index) for each in report.episodes}
            missing = tuple(item for item in names if item in self._entries[item[0]].missing)
            reply(Reported(missing=missing))

    def look(self, now: float) -> None:
        """Run periodic checks for silent nodes, nodes that fail everything, and episodes to give up."""
        for name in self.balance.look(now):
            self.status.tell(f"node {name}: no heartbeat; other nodes make its episodes", kind="fault")
        for name in list(self.balance.nodes):
            if name not in self._drained and (evidence := self.balance.health.judge(name)):
                self._drained[name] = evidence
                self.balance.drain(name)
                self.balance.withdraw_votes(name)
                self.status.tell(f"node {name}: drained: {evidence}", kind="fault")
        for group, index in self.balance.try_giving_up():
            self._give_up(group, index)
        self._write_given_up()
        present = [node.slots for node in self.balance.nodes.values() if node.name not in self._drained]
        self._demand.update(self.balance.open_seconds, present, now)
        doubled = sum(entry.doubled for entry in self._entries.values())
        self.status.update(self.balance, self._drained, now, wanted_nodes=self.wanted, doubled=doubled)

    def stop(self, why: str) -> None:
        """Stop handing out work; each node leaves after the answer to its next message."""
        self._is_stopping = why
        for name in self.balance.nodes:
            self.balance.drain(name)

    @property
    def wanted(self) -> int:
        """Number of nodes that the job requests; 0 without bounds, and once no work is left."""
        return self._demand.wanted

    @property
    def is_done(self) -> bool:
        """True if every episode is settled or given up, and all rows are durable."""
        return self.balance.done and not self._waiting.reports and not self._unwritten

    def _join(self, request: Join, now: float) -> Answer:
        fits, refusal = self._admission.check(request)
        if refusal:
            self.failure = f"node {request.node}: {refusal}"
            self.status.tell(f"node {request.node}: refused: {refusal}", kind="fault")
            return JoinRefused(line=refusal)
        if self._drained.pop(request.node, None) and request.node in self.balance.nodes:
            self.balance.leave(request.node)
        if not request.first:
            self.balance.join(request.node, request.slots, now, groups=fits)
            self.failure = ""
            self.status.join(request, now)
        return self._admission.describe(set(fits), request.first)

    def _note_unfit(self, request: Request) -> None:
        """Record why an unfit node leaves before it joins; a run without other nodes ends for this reason."""
        if isinstance(request, Leave) and request.has_failed and not self.failure:
            self.failure = f"node {request.node}: {request.why}"
            self.status.tell(self.failure, kind="fault")

    def _note_lacking(self) -> None:
        """Record the tasks on which no present node can work, with the missing resource, as the reason of a failure."""
        left = [
            name
            for name, work in self.balance.work.items()
            if work.open and not any(node.can_take(name) for node in self.balance.nodes.values())
        ]
        if left:
            self.failure = "; ".join(
                f"no node has what {name} needs: {self._admission.lacking.get(name, '')}" for name in left
            )

    def _answer(self, request: Request, now: float) -> Answer:
        balance, node = self.balance, request.node
        match request:
            case LeaseRequest(idle=idle, ahead=ahead):
                if node in self._drained:
                    return Finished(why=self._drained[node], has_failed=True)
                if self._is_stopping or balance.done:
                    return Finished(why=self._is_stopping)
                if not balance.has_work_for(node):
                    self._note_lacking()
                    return Finished()
                lease = balance.pull(node, idle, now, ahead=ahead)
                if lease is None:
                    if self.wanted and self._count_alive(now) > self.wanted and not balance.nodes[node].holdings:
                        return Finished(why="fewer nodes are wanted")
                    return NoLease(seconds=_POLL)
                self.status.leased(lease)
                return Leased(number=lease.number, group=lease.group, indices=lease.indices)
            case Beat(held=held, spare=spare, reading=reading, capabilities=free):
                if free:
                    balance.block(node, (name for name, task in self._tasks.items() if task.needs.lacking(free)))
                balance.note_loaded(node, reading.group)
                balance.beat(node, now, ((group, index) for group, indices in held.items() for index in indices))
                balance.note_spare(node, spare)
                self.status.read(node, reading)
                recall = balance.take_recall(node)
                if evidence := self._drained.get(node):
                    return Beaten(recall=recall, drain=evidence, has_failed=True)
                return Beaten(recall=recall, drain=self._is_stopping or ("done" if balance.done else ""))
            case Details(status=status):
                self.status.details.add(node, status)
            case Description(group=group, info=info):
                self._entries[group].describe(node, info)
            case GiveBack(group=group, indices=indices):
                balance.gave_back(node, ((group, index) for index in indices), now)
            case Vote(group=group, index=index, evidence=evidence):
                if not balance.is_settled(group, index) and not self._entries[group].open_count(index):
                    balance.settled(node, 0, group, index, now)  # several nodes have stored its variants together
                elif balance.vote(node, group, index, evidence):
                    self._give_up(group, index)
            case Faults(group=group, rows=rows):
                new = self._entries[group].record_faults(node, rows)
                balance.health.record_fault(node, len(new))
                self.status.count_faults(node, new)
            case SignatureRequest(group=group, name=name, method=method):
                return Signed(url=self._sign(node, group, name, method))
            case Leave(why=why, has_failed=has_failed):
                settled = balance.nodes[node].settled_count
                balance.leave(node)
                if has_failed or node in self._drained:
                    self.failure = f"node {node}: {why}"
                self.status.leave(node, why, has_failed=has_failed, settled=settled)
        return Done()

    def _count_alive(self, now: float) -> int:
        """Count the nodes with a recent message that are not draining.

        Dead and draining nodes are left out: they must not make a working node surplus.
        """
        return sum(now - node.last_beat < _ALIVE and not node.is_draining for node in self.balance.nodes.values())

    def _sign(self, node: str, group: str, name: str, method: str) -> str:
        def may_write(index: int) -> bool:
            item = (group, index)
            if index >= self._tasks[group].spec.episodes:
                return False
            return item in self.balance.nodes[node].holdings or self.balance.is_settled(*item)

        if not is_allowed(name, node, may_write):
            return ""
        try:
            return self._entries[group].sign(name, method)
        except InputError as error:
            self.status.tell(f"node {node}: no signature: {error}"[:300], kind="fault")
            return ""

    def _give_up(self, group: str, index: int) -> None:
        evidence = self.balance.given_up[group, index]
        self.status.give_up(group, index, evidence, variants=self._entries[group].open_count(index))
        self._unwritten.append((group, index))
        self._write_given_up()

    def _write_given_up(self) -> None:
        """Record given-up episodes in the ledgers; if the disk is full, the next call continues."""
        try:
            while self._unwritten:
                group, index = self._unwritten[0]
                self._entries[group].quarantine(index, {"evidence": to_json(self.balance.given_up[group, index])})
                del self._unwritten[0]
        except StorageError as error:
            self.status.tell(str(error), kind="disk")

    def _forget_missing(self) -> None:
        for entry in self._entries.values():
            entry.missing.clear()
