"""Agent of a node: pulls leases, feeds the cell, uploads and reports results, and sends heartbeats."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

from nimbus.datagen.errors import InputError
from nimbus.datagen.version import nimbus_version
from nimbus.runner.cluster.line_socket import HeadClient, HeadUnreachableError
from nimbus.runner.cluster.machine import free_disk, platform_name, read_capabilities
from nimbus.runner.cluster.messages import (
    FAILED,
    Answer,
    Beat,
    Beaten,
    Capabilities,
    CellTask,
    Finished,
    GiveBack,
    Join,
    Joined,
    JoinRefused,
    Leased,
    LeaseRequest,
    Leave,
    NodeReading,
    NoLease,
    Request,
    Unknown,
)
from nimbus.runner.cluster.node_cell import NodeCell
from nimbus.runner.cluster.node_delivery import NodeDelivery
from nimbus.runner.cluster.signing import HeadSignatures
from nimbus.runner.system.output import write_error
from nimbus.runner.system.processes import die_with_parent, resident_bytes

_TICK = 0.05
_BEAT = 2.0
_CAPABILITIES = 30.0
"""Interval between reports of free resources [s]."""
_POLL = 0.2
"""Interval between readings of the cell's ledger [s]."""
_RETRY = 1.0
"""Delay before an unanswered request is repeated [s]."""
_IDLE = 60.0
"""Time without a lease after which the cell ends; it loads again with the next lease [s]."""
_GRACE = 30.0
"""Time for current episodes after a stop request [s]."""
_DELIVERY = 10.0
"""Additional time for the delivery of results [s]."""
_MOST_HELD = 4000
"""Number of held episodes above which an agent pulls no more, because a heartbeat lists them in one message."""
_OUTBOX_BYTES = 8 << 30
"""Size of finished, unacknowledged episodes above which no lease is pulled [bytes]."""


@dataclass(frozen=True, kw_only=True)
class AgentOptions:
    """Settings of an agent."""

    node: str
    slots: int
    folder: Path
    """Folder of the node, on its own disk if the shared one is slow."""
    price_class: str = ""
    drop_every: int = 0
    """Dropped answers, for tests; see :class:`HeadClient`."""
    idle_seconds: float = _IDLE


@dataclass
class _HeldWork:
    """Episodes of one group that the agent holds."""

    queued: deque[tuple[int, int]] = field(default_factory=deque)
    """Index and lease of episodes not yet passed to the cell."""
    fed: dict[int, int] = field(default_factory=dict)
    """Lease by index of episodes passed to the cell."""


class NodeAgent:
    """Supplies one node with work.

    Args:
        options: Settings of the agent.
        client: Connection to the head.
    """

    def __init__(self, options: AgentOptions, client: HeadClient) -> None:
        self._options, self._client = options, client
        self._tasks: dict[str, CellTask] = {}
        self._cells: dict[str, NodeCell] = {}
        self._held: dict[str, _HeldWork] = {}
        self._signatures = HeadSignatures(options.node, client.another())
        self._delivery = NodeDelivery(
            options.node,
            options.slots,
            self._ask,
            self._cells,
            lambda group: self._tasks[group].upload,
            self._signatures.ask,
        )
        self._has_joined = False
        self._first_task = 0
        """Number of the first task that the head describes next."""
        self._offer: Capabilities | None = None
        """Free resources before this agent loaded anything."""
        self._leaving, self._has_failed = "", False
        self._stop_at = 0.0
        self._next: dict[str, float] = {}
        self._last_lease = time.monotonic()

    def ask_to_stop(self) -> None:
        """Drain: begin no more episodes, finish the current ones, and leave."""
        self._leaving = self._leaving or "asked to stop"

    def run(self) -> int:
        """Work until the head has no more work; return the exit code."""
        try:
            return self._run()
        except InputError as error:
            self._fail(str(error))
            self._leave()
            raise
        finally:
            self._delivery.close()
            self._signatures.close()
            for cell in self._cells.values():
                cell.kill()

    def _run(self) -> int:
        """Work until the head has no more work, or this node leaves."""
        while True:
            now = time.monotonic()
            if not self._has_joined and self._is_due("join", now, _RETRY):
                if not self._join():
                    return FAILED
            self._look_at_cells(now)
            if self._has_joined:
                self._delivery.go_on(now)
                if self._delivery.failure:
                    self._fail(self._delivery.failure)
                if self._is_due("beat", now, _BEAT):
                    self._beat()
                self._pull(now)
            if self._leaving and self._drain(now):
                return FAILED if self._has_failed else 0
            time.sleep(_TICK)

    # Messages

    def _ask(self, request: Request) -> Answer | None:
        """Send a request to the head; None without an answer, or if the head no longer knows this node."""
        try:
            answer = self._client.ask(request)
        except HeadUnreachableError:
            return None
        if isinstance(answer, Unknown):
            self._has_joined, self._first_task = False, 0
            return None
        return answer

    def _join(self) -> bool:
        """Join the cluster; False if the head refuses this node."""
        options = self._options
        self._offer = self._offer or read_capabilities()  # later, its own cells fill the memory
        answer = self._ask(
            Join(
                node=options.node,
                slots=options.slots,
                version=nimbus_version(),
                platform=platform_name(),
                host=socket.gethostname(),
                pid=os.getpid(),
                clock=time.time(),
                price_class=options.price_class,
                capabilities=self._offer,
                first=self._first_task,
            )
        )
        if isinstance(answer, JoinRefused):
            write_error(f"node {options.node}: {answer.line}\n")
            return False
        if isinstance(answer, Joined):
            self._first_task, self._has_joined = answer.next, not answer.next
            for task in answer.tasks:
                self._tasks[task.group] = task
                if task.group not in self._held:
                    self._held[task.group] = _HeldWork()
                    self._adopt(task)
            self._next["beat"] = 0.0
            if answer.next:
                self._next["join"] = 0.0
        return True

    def _adopt(self, task: CellTask) -> None:
        """Report unacknowledged results of an earlier agent of this node."""
        cell = NodeCell(task, self._options.folder, slots=self._options.slots)
        for index in cell.unreported():
            self._held[task.group].fed[index] = 0
        if self._held[task.group].fed:
            self._cells[task.group] = cell

    def _beat(self) -> None:
        free = read_capabilities() if self._is_due("capabilities", time.monotonic(), _CAPABILITIES) else None
        beat = Beat(node=self._options.node, held=self._holdings(), reading=self._reading(), capabilities=free)
        answer = self._ask(beat)
        if not isinstance(answer, Beaten):
            return
        if answer.recall:
            self._give_back(answer.recall)
        if answer.drain:
            self._end_work(answer.drain, has_failed=answer.has_failed)

    def _give_back(self, count: int) -> None:
        for group, work in self._held.items():
            back = [work.queued.pop()[0] for _ in range(min(count, len(work.queued)))]
            count -= len(back)
            if back:
                self._ask(GiveBack(node=self._options.node, group=group, indices=tuple(back)))

    def _holdings(self) -> dict[str, tuple[int, ...]]:
        held = {
            group: {*work.fed, *(index for index, _ in work.queued)} | self._delivery.indices(group)
            for group, work in self._held.items()
        }
        return {group: tuple(sorted(indices)) for group, indices in held.items() if indices}

    def _reading(self) -> NodeReading:
        running = [cell for cell in self._cells.values() if cell.is_running]
        statuses = [status for cell in running if (status := cell.status())]
        workers = [worker for status in statuses for worker in status.workers]
        ready = any(cell.is_fit() for cell in running)
        state = "draining" if self._leaving else "idle" if not running else "working" if ready else "starting"
        return NodeReading(
            state=state,
            resident_bytes=sum(worker.resident for worker in workers) + resident_bytes(os.getpid()),
            disk_free_bytes=free_disk(self._options.folder),
            outbox_bytes=self._delivery.byte_count,
            workers=len(workers),
            group=running[0].task.group if running else "",
        )

    @property
    def _outbox_limit(self) -> int:
        """Size of results that may wait [bytes]."""
        return max((cell.spool_bytes for cell in self._cells.values()), default=0) or _OUTBOX_BYTES

    def _pull(self, now: float) -> None:
        """Pull a lease before slots run out of work."""
        if self._leaving or now < self._next.get("pull", 0.0) or self._delivery.byte_count > self._outbox_limit:
            return
        slots = self._options.slots
        fed = sum(len(work.fed) for work in self._held.values())
        spare = sum(len(work.queued) for work in self._held.values()) + max(0, fed - slots)
        idle, ahead = max(0, slots - fed - spare), max(0, slots - spare)
        if not ahead or sum(map(len, self._holdings().values())) > _MOST_HELD:
            return
        answer = self._ask(LeaseRequest(node=self._options.node, idle=idle, ahead=min(ahead, slots)))
        match answer:
            case Leased():
                self._last_lease = now
                work = self._held[answer.group]
                # After a restart of the head, a lease may name finished, unacknowledged episodes.
                known = {*work.fed, *(index for index, _ in work.queued)} | self._delivery.indices(answer.group)
                work.queued.extend((index, answer.number) for index in answer.indices if index not in known)
            case Finished():
                self._end_work(answer.why or "done", has_failed=answer.has_failed)
            case NoLease():
                self._next["pull"] = now + (answer.seconds if idle else 2 * answer.seconds)
            case _:
                self._next["pull"] = now + _RETRY

    # Cells

    def _look_at_cells(self, now: float) -> None:
        polls = self._is_due("poll", now, _POLL)
        for group, work in self._held.items():
            if not work.queued and not work.fed and group not in self._cells:
                continue
            cell = self._cells.get(group)
            if cell is None:
                cell = self._cells[group] = NodeCell(
                    self._tasks[group], self._options.folder, slots=self._options.slots
                )
            is_busy = bool(work.queued or work.fed)
            if is_busy and not self._leaving:
                cell.keep_running(now)
            if cell.failure:
                self._fail(cell.failure)
                continue
            if polls:
                self._collect(cell, work, now)
            if not self._leaving and cell.is_fit():
                while work.queued and len(work.fed) < 2 * cell.slots:
                    index, lease = work.queued.popleft()
                    work.fed[index] = lease
                cell.feed(work.fed)
            if not is_busy and cell.is_running and now - self._last_lease > self._options.idle_seconds:
                cell.close_feed()

    def _collect(self, cell: NodeCell, work: _HeldWork, now: float) -> None:
        """Move results of the cell into the outbox."""
        group = cell.task.group
        for result in cell.results(list(work.fed)):
            lease = work.fed.pop(result.index)
            self._delivery.add(group, lease, result, now)
        if rows := cell.faults():
            self._delivery.add_faults(cell, rows)

    def _end_work(self, why: str, *, has_failed: bool) -> None:
        """Leave, because the head has no more work for this node."""
        if not self._leaving:
            self._leaving, self._has_failed = why, has_failed

    def _fail(self, why: str) -> None:
        """Leave, because a cell or the uploads cannot work here; no episode is charged."""
        if not self._has_failed:
            self._leaving, self._has_failed = why, True

    # End

    def _drain(self, now: float) -> bool:
        """Finish current episodes; True once this node has left."""
        if not self._stop_at:
            self._stop_at = now + _GRACE
            for group, work in self._held.items():
                back = tuple(index for index, _ in work.queued)
                work.queued.clear()
                if back and self._has_joined:
                    self._ask(GiveBack(node=self._options.node, group=group, indices=back))
            for cell in self._cells.values():
                cell.drain()
        if any(cell.is_running and not cell.failure for cell in self._cells.values()) and now < self._stop_at:
            return False
        for group, cell in self._cells.items():
            self._collect(cell, self._held[group], now)
        waits = not self._delivery.is_empty and not self._delivery.failure
        if waits and now < self._stop_at + _DELIVERY:
            return False
        for group, work in self._held.items():
            if work.fed and self._has_joined:
                self._ask(GiveBack(node=self._options.node, group=group, indices=tuple(work.fed)))
        self._leave()
        return True

    def _leave(self) -> None:
        """Send the last message."""
        leave = Leave(node=self._options.node, why=self._leaving[:1000], has_failed=self._has_failed)
        for _ in range(3):
            if self._ask(leave) or not self._has_joined:
                break

    def _is_due(self, what: str, now: float, period: float) -> bool:
        if now < self._next.get(what, 0.0):
            return False
        self._next[what] = now + period
        return True


def main(words: list[str]) -> int:
    """Work for a head: ``node_agent SOCKET NAME SLOTS FOLDER PARENT_PID [IDLE_SECONDS]``."""
    path, node, slots, folder, parent = Path(words[0]), words[1], int(words[2]), Path(words[3]), int(words[4])
    die_with_parent(parent)
    folder.mkdir(parents=True, exist_ok=True)
    drop_every = int(os.environ.get("NIMBUS_DROP_ANSWERS", "0"))
    options = AgentOptions(node=node, slots=slots, folder=folder)
    agent = NodeAgent(options, HeadClient(path, drop_every=drop_every))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: agent.ask_to_stop())
    try:
        return agent.run()
    except InputError as error:
        write_error(f"node {node}: {error}\n")
        return FAILED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
