"""Agent of a node: pulls leases, feeds the node's cells, delivers results and sends heartbeats."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.own_files import make_subfolder
from nimbus.datagen.version import nimbus_version
from nimbus.runner.cluster.line_socket import HeadClient, HeadUnreachableError
from nimbus.runner.cluster.machine import platform_name, read_capabilities
from nimbus.runner.cluster.messages import (
    FAILED,
    Answer,
    Beat,
    Beaten,
    Capabilities,
    Details,
    Finished,
    GiveBack,
    Join,
    Joined,
    JoinRefused,
    Leased,
    LeaseRequest,
    Leave,
    NoLease,
    Request,
    Unknown,
)
from nimbus.runner.cluster.node_cells import NodeCells
from nimbus.runner.cluster.node_delivery import NodeDelivery
from nimbus.runner.cluster.signing import HeadSignatures
from nimbus.runner.system.output import write_error
from nimbus.runner.system.processes import die_with_parent

_TICK = 0.05
_BEAT = 2.0
_CAPABILITIES = 30.0
"""Interval between reports of free resources [s]."""
_DETAILS = 10.0
"""Interval between reports of the cell's status [s]."""
_POLL = 0.2
"""Interval between readings of the cell's ledger [s]."""
_RETRY = 1.0
"""Delay before an unanswered request is repeated [s]."""
_IDLE = 60.0
"""Time without a lease after which idle cells are stopped [s]; the next lease starts them again."""
_GRACE = 30.0
"""Time limit for finishing the current episodes after a stop request [s]."""
_DELIVERY = 10.0
"""Additional time limit for delivering their results [s]."""
_MOST_HELD = 4000
"""Number of held episodes above which the agent pulls no lease: a heartbeat must list all of them in one message."""
_OUTBOX_BYTES = 8 << 30
"""Size of finished, unacknowledged episodes above which the node pauses, where no spool is given [bytes]."""


@dataclass(frozen=True, kw_only=True)
class AgentOptions:
    """Settings of an agent."""

    node: str
    slots: int
    folder: Path
    """Folder of the node's files; on a local disk if the shared one is slow."""
    price_class: str = ""
    drop_every: int = 0
    """For tests: number of answers of which one is dropped; see :class:`HeadClient`."""
    idle_seconds: float = _IDLE
    """Time without a lease after which idle cells are stopped [s]."""


class NodeAgent:
    """Supplies the cells of one node with work, and delivers their results.

    Args:
        options: Settings of the agent.
        client: Connection to the head.
    """

    def __init__(self, options: AgentOptions, client: HeadClient) -> None:
        self._options, self._client = options, client
        self._cells = NodeCells(options.folder, options.slots, delivered=lambda group: self._delivery.indices(group))
        self._signatures = HeadSignatures(options.node, client.another())
        self._delivery = NodeDelivery(
            options.node,
            options.slots,
            self._ask,
            self._cells.cells,
            lambda group: self._cells.tasks[group].upload,
            self._signatures.ask,
        )
        self._has_joined = False
        self._first_task = 0
        """Number of the next task that the head has to describe."""
        self._offer: Capabilities | None = None
        """Free resources before any cell of this node started."""
        self._leaving, self._has_failed, self._stop_at = "", False, 0.0
        self._next: dict[str, float] = {}
        self._refused_idle = 0
        """Number of idle slots when the head had no lease; with more idle slots, the agent asks again at once."""
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
            for cell in self._cells.cells.values():
                cell.kill()

    def _run(self) -> int:
        """Run the main loop until this node has left."""
        while True:
            now = time.monotonic()
            if not self._has_joined and self._is_due("join", now, _RETRY):
                if not self._join():
                    return FAILED
            self._attend_cells(now)
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

    def _ask(self, request: Request) -> Answer | None:
        """Send a request to the head and return its answer.

        Returns:
            None without an answer, and if the head does not know this node, which then joins again.
        """
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
        self._offer = self._offer or read_capabilities()  # detected once: later, this node's cells occupy memory
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
                self._cells.add(task)
            self._next["beat"] = 0.0
            if answer.next:
                self._next["join"] = 0.0
        return True

    def _beat(self) -> None:
        free = read_capabilities() if self._is_due("capabilities", time.monotonic(), _CAPABILITIES) else None
        reading = self._cells.read(
            is_leaving=bool(self._leaving), is_full=self._is_full, outbox_bytes=self._delivery.byte_count
        )
        held, spare = self._cells.holdings, self._cells.queued_count
        beat = Beat(node=self._options.node, held=held, spare=spare, reading=reading, capabilities=free)
        answer = self._ask(beat)
        if not isinstance(answer, Beaten):
            return
        self._return(self._cells.take_back(answer.recall))
        if answer.drain:
            self._end_work(answer.drain, has_failed=answer.has_failed)
        if self._is_due("details", time.monotonic(), _DETAILS) and (status := self._cells.details()):
            self._ask(Details(node=self._options.node, status=status))

    def _pull(self, now: float) -> None:
        """Pull a lease if slots have no work, or none after their current episode."""
        slots = self._options.slots
        fed = self._cells.fed_count
        spare = self._cells.queued_count + max(0, fed - slots)
        idle, ahead = max(0, slots - fed - spare), max(0, slots - spare)
        if self._leaving or not ahead or (now < self._next.get("pull", 0.0) and idle <= self._refused_idle):
            return
        if self._is_full or sum(map(len, self._cells.holdings.values())) > _MOST_HELD:
            return
        answer = self._ask(LeaseRequest(node=self._options.node, idle=idle, ahead=min(ahead, slots)))
        self._refused_idle = slots
        match answer:
            case Leased():
                self._last_lease = now
                self._cells.enqueue(answer)
            case Finished():
                self._end_work(answer.why or "done", has_failed=answer.has_failed)
            case NoLease():
                self._next["pull"], self._refused_idle = now + (answer.seconds if idle else 2 * answer.seconds), idle
            case _:
                self._next["pull"] = now + _RETRY

    def _attend_cells(self, now: float) -> None:
        if is_full := self._is_full:
            self._last_lease = now  # cells wait for room, not for work
        if not self._leaving:
            is_idle_long = now - self._last_lease > self._options.idle_seconds
            self._cells.keep_fed(now, is_idle_long=is_idle_long, is_full=is_full)
        if self._is_due("poll", now, _POLL):
            self._collect(now)
        if self._cells.failure:
            self._fail(self._cells.failure)

    @property
    def _is_full(self) -> bool:
        """True if as many bytes wait for upload as this node's part of the spool allows."""
        return self._delivery.byte_count > (self._cells.spool_bytes or _OUTBOX_BYTES)

    def _collect(self, now: float) -> None:
        """Move results and faults of the cells into the outbox."""
        for cell, results, faults in self._cells.collect():
            for lease, result in results:
                self._delivery.add(cell.task.group, lease, result, now)
            if faults:
                self._delivery.add_faults(cell, faults)

    def _end_work(self, why: str, *, has_failed: bool) -> None:
        """Begin to leave, because the head has no more work for this node."""
        if not self._leaving:
            self._leaving, self._has_failed = why, has_failed

    def _fail(self, why: str) -> None:
        """Begin to leave, because a cell or the upload cannot work here; this counts against no episode."""
        if not self._has_failed:
            self._leaving, self._has_failed = why, True

    def _drain(self, now: float) -> bool:
        """Finish the current episodes and deliver their results; return True once this node has left."""
        if not self._stop_at:
            self._stop_at = now + _GRACE
            self._return(self._cells.take_back(self._cells.queued_count))
            for cell in self._cells.cells.values():
                cell.drain()
        if any(not cell.failure for cell in self._cells.running) and now < self._stop_at:
            return False
        self._collect(now)
        waits = not self._delivery.is_empty and not self._delivery.failure
        if waits and now < self._stop_at + _DELIVERY:
            return False
        self._return(self._cells.fed)
        self._delivery.describe()
        self._leave()
        return True

    def _return(self, indices: Mapping[str, Iterable[int]]) -> None:
        """Give episodes back to the head."""
        for group, back in indices.items():
            if self._has_joined:
                self._ask(GiveBack(node=self._options.node, group=group, indices=tuple(back)))

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
    """Run an agent: ``node_agent SOCKET NAME SLOTS FOLDER PARENT_PID``; return the exit code."""
    path, node, slots, folder, parent = Path(words[0]), words[1], int(words[2]), Path(words[3]), int(words[4])
    die_with_parent(parent)
    folder.parent.mkdir(parents=True, exist_ok=True)
    drop_every = int(os.environ.get("NIMBUS_DROP_ANSWERS", "0"))
    try:
        make_subfolder(folder)
        options = AgentOptions(node=node, slots=slots, folder=folder)
        agent = NodeAgent(options, HeadClient(path, drop_every=drop_every))
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: agent.ask_to_stop())
        return agent.run()
    except InputError as error:
        write_error(f"node {node}: {error}\n")
        return FAILED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
