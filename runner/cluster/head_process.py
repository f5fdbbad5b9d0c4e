"""Process of the head: opens the datasets, serves agents over a socket, and writes the status until the job ends."""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import ExitStack
from pathlib import Path

from nimbus.datagen.errors import InputError, StoreAwayError, single_line
from nimbus.runner.cell.missing_work import completed_before
from nimbus.runner.cluster.balance import Balance
from nimbus.runner.cluster.dataset_entry import DatasetEntry
from nimbus.runner.cluster.head import Head
from nimbus.runner.cluster.head_status import HeadStatus
from nimbus.runner.cluster.job import ClusterJob, HeadEnd
from nimbus.runner.cluster.line_socket import LineConnection, LineServer
from nimbus.runner.cluster.message_parts import PartBuffer
from nimbus.runner.cluster.messages import Done, MessagePart, Unknown, request_of, to_line
from nimbus.runner.cluster.pending_work import WorkGroup
from nimbus.runner.monitor.progress import Progress
from nimbus.runner.system.output import write_error, write_json
from nimbus.runner.system.processes import die_with_parent

_TICK = 0.5
"""Interval of the checks of nodes and status [s]."""
_WAIT = 0.02
"""Longest wait for a message while reports wait for their commit [s]."""
_FAREWELL = 15.0
"""Time limit for nodes to leave after the last episode is settled [s]."""
_ABANDONED = 60.0
"""Time limit for another node to join after the last one left because it cannot work; then the run fails [s]."""
_REQUESTED = 600.0
"""Same limit for a job that requests nodes from an autoscaler, which takes minutes to start one [s]."""
_AWAY = 2.0
"""Interval between attempts to open a dataset whose store does not answer [s]."""
_STOPPING = 60.0
"""Time limit for nodes to finish and deliver their current episodes after a stop request [s]."""


class HeadServer:
    """Serves a head on a Unix socket.

    Args:
        job: Job of the cluster.
        socket: Path of the socket.
        cores: Number of cores that all nodes share; 0 if each slot has a core of its own.

    Raises:
        InputError: A folder cannot be used for this run.
        StoreAwayError: The store of a dataset does not answer. It is needed to find the last episodes of a killed head.
    """

    def __init__(self, job: ClusterJob, socket: Path, *, cores: int = 0) -> None:
        started = time.time()
        self._entries: dict[str, DatasetEntry] = {}
        self._stop_asked = False
        self._parts = PartBuffer()
        try:
            for task in job.tasks:
                self._entries[task.name] = DatasetEntry(task)
        except InputError:
            for entry in self._entries.values():
                entry.close("failed")
            raise
        before = [completed_before(entry.dataset.ledger, entry.task.spec) for entry in self._entries.values()]
        self.progress = Progress(
            Path(job.folder),
            task=", ".join(self._entries),
            target=sum(task.spec.target for task in job.tasks),
            already=sum(each.settled for each in before),
            already_stored=sum(each.stored for each in before),
            started=started,
            mode="cluster",
            launcher=os.getppid(),
        )
        for entry, each in zip(self._entries.values(), before, strict=True):
            entry.progress = (self.progress, *self._own_progress(job, entry, each.settled, each.stored))
        epoch = max(entry.run.id for entry in self._entries.values())
        groups = [
            WorkGroup(name=task.name, count=task.spec.episodes, priority=task.priority, weights=task.weights)
            for task in job.tasks
        ]
        balance = Balance(
            groups,
            states={name: entry.states() for name, entry in self._entries.items()},
            cost_classes={task.name: task.cost_class for task in job.tasks},
            epoch=epoch,
        )
        status = HeadStatus(self.progress, price_per_hour=job.price_per_hour, shared_cores=cores)
        self.head = Head(job, self._entries, balance, status, epoch=epoch)
        self.progress.end_phase("load")
        self.progress.activity("waiting for nodes")
        self._server = LineServer(socket)

    def ask_to_stop(self) -> None:
        """Request that the nodes drain and the head ends."""
        self._stop_asked = True

    def run(self) -> HeadEnd:
        """Serve until all episodes are settled, a stop is requested, or no node can work; return the result."""
        next_tick, leaving_since, abandoned_since = 0.0, 0.0, 0.0
        state = "failed"
        try:
            while True:
                has_waiting = self.head.commit_due(float("inf"))
                self._server.serve(_WAIT if has_waiting else _TICK / 5, self._take)
                now = time.monotonic()
                if self.head.commit_due(now):
                    self.head.commit(now)
                if now >= next_tick:
                    next_tick = now + _TICK
                    self.head.look(now)
                    for entry in self._entries.values():
                        entry.flush()
                is_abandoned = bool(self.head.failure) and not self._has_present_nodes
                abandoned_since = (abandoned_since or now) if is_abandoned else 0.0
                limit = _REQUESTED if self.head.job.bounds else _ABANDONED
                if abandoned_since and now - abandoned_since > limit:
                    self._stop_asked = True
                if self._stop_asked:
                    self.head.stop("stopping")
                if self.head.is_done or self._stop_asked:
                    leaving_since = leaving_since or now
                    patience = _FAREWELL if self.head.is_done else _STOPPING
                    if not self._has_present_nodes or now - leaving_since > patience:
                        state = self._end_state()
                        return HeadEnd(state=state, line=self.head.failure if state == "failed" else "")
        finally:
            self._close(state)

    @property
    def _has_present_nodes(self) -> bool:
        """True if a node is not silent; killed nodes remain listed, because they may return."""
        return any(not node.is_silent for node in self.head.balance.nodes.values())

    def _end_state(self) -> str:
        if not self.head.is_done:
            return "failed" if self.head.failure and not self._has_present_nodes else "interrupted"
        status = self.progress.status
        return "done" if status.already_stored + status.stored >= status.target else "short"

    def _take(self, connection: LineConnection, line: bytes) -> None:
        try:
            request = request_of(line)
            if isinstance(request, MessagePart):
                if request.node not in self.head.balance.nodes:
                    connection.answer(to_line(Unknown()))
                    return
                if (whole := self._parts.add(request)) is None:
                    connection.answer(to_line(Done()))
                    return
                request = request_of(whole)
            self.head.take(
                request,
                lambda answer: connection.answer(to_line(answer)),
                time.monotonic(),
                refuse=lambda: self._server.drop(connection),
            )
        except ValueError as error:
            self.head.status.tell(f"an invalid message: {error}"[:200], kind="fault")
            self._server.drop(connection)

    def _own_progress(self, job: ClusterJob, entry: DatasetEntry, settled: int, stored: int) -> tuple[Progress, ...]:
        """Return the status of a task's own dataset; empty for a job with a single task, whose status is the same."""
        if len(job.tasks) == 1:
            return ()
        own = Progress(
            entry.dataset.folder,
            task=entry.task.name,
            target=entry.task.spec.target,
            already=settled,
            already_stored=stored,
            mode="cluster",
        )
        return (own,)

    def _close(self, state: str) -> None:
        with ExitStack() as closing:  # close everything, even if one of them raises
            closing.callback(self._server.close)
            closing.callback(self.progress.finish, state)
            for entry in self._entries.values():
                closing.callback(self._end, entry, state)
                for progress in entry.progress[1:]:
                    closing.callback(progress.finish, state)
            self.head.look(time.monotonic())

    def _end(self, entry: DatasetEntry, state: str) -> None:
        status = self.progress.status
        entry.close(state, startup_seconds=status.startup_seconds, cores=status.cores)


def open_server(job: ClusterJob, socket: Path, *, cores: int = 0) -> HeadServer:
    """Open the head; while a store does not answer, try again. Raises the ``InputError`` of :class:`HeadServer`."""
    while True:
        try:
            return HeadServer(job, socket, cores=cores)
        except StoreAwayError as error:
            write_error(f"head: {error}\n")
            time.sleep(_AWAY)


def main(words: list[str]) -> int:
    """Serve a job: ``head_process SOCKET CORES PARENT_PID``.

    Standard input is a :class:`ClusterJob` as JSON; the last line of standard output is a :class:`HeadEnd` as JSON.
    """
    socket, cores, parent = Path(words[0]), int(words[1]), int(words[2])
    die_with_parent(parent)
    job = ClusterJob.from_text(sys.stdin.read())
    try:
        server = open_server(job, socket, cores=cores)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: server.ask_to_stop())
        end, code = server.run(), 0
    except InputError as error:
        end, code = HeadEnd(state="failed", line=single_line(str(error))), error.exit_code
    write_json(end, indent=None)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
