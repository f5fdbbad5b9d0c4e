"""Worker pool: starts workers through the fork server, reads their messages, ends and reaps them."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nimbus.datagen.files.own_files import create_file, remove_file
from nimbus.datagen.store.publish import disk
from nimbus.runner.cell.queue.gpu_allocation import GpuAllocation
from nimbus.runner.cell.queue.lease import Role
from nimbus.runner.cell.queue.restart_backoff import Backoff
from nimbus.runner.cell.transport.channel import Channel, pair
from nimbus.runner.cell.transport.messages import Message, Spawn, WorkerError, all_from_bytes, to_bytes
from nimbus.runner.cell.transport.shared_slots import SharedSlots
from nimbus.runner.cell.transport.spec import CellSpec
from nimbus.runner.cell.worker.heartbeat import HeartbeatPage
from nimbus.runner.system import processes

_LOG_TAIL = 20_000
"""Longest log tail kept in an incident [bytes]."""


@dataclass(kw_only=True)
class WorkerHandle:
    """One worker of the worker pool."""

    number: int
    """Number of the worker, unique in the run."""
    row: int
    """Row in the heartbeat page, ``seat`` in the status file; a successor takes the row."""
    role: str
    channel: Channel
    log: Path
    started: float
    pid: int = 0
    pidfd: int = -1
    orders: int = 0
    """Number of orders given."""
    done: int = 0
    """Number of orders that it has reported as complete."""
    ordered: float = 0.0
    """Time of the last order [s monotonic]."""
    ordered_as: str = ""
    """Role of the last order; the worker's own may have changed since."""
    is_idle: bool = False
    room: int = 0
    """Number of further orders that it asks for while it plans others in lockstep."""
    flushing: bool = False
    idle_at: int = -1
    """Revision of the work at which nothing fitted it, see :meth:`Dispatcher.reconsider`."""
    roles: tuple[str, ...] = ()
    results: int = 0
    """Number of plans, rejections and stored episodes."""
    backoff: Backoff
    """Restart delays of its row."""
    instance: int = -1
    """Number of the Isaac Sim instance that it runs; -1 for none."""
    gpu: str = ""
    """UUID of its GPU; empty for none."""
    only_index: int | None = None
    """Index of its first order while it has had no other."""
    retiring: str = ""
    """Reason to exit after its current orders; empty for none."""
    stopped: bool = False
    """True after it was ordered to exit."""
    ending: str = ""
    """Reason for which it was killed; empty when it was not."""
    suspected: bool = False
    """True once its stacks were written because half of a limit had passed."""
    malformed: bool = False
    """True after an invalid message; its channel is no longer read."""
    trouble: WorkerError | None = None
    """Error that it reported before it ended."""
    unfinished: int | None = None
    """Index of the episode without a result for which it was killed."""

    @property
    def is_fresh(self) -> bool:
        """True when it has received no orders yet."""
        return self.orders == 0

    @property
    def is_working(self) -> bool:
        """True while it carries out orders or writes their results; False while it starts."""
        return self.flushing or not (self.is_idle or self.is_fresh)


class WorkerPool:
    """Starts and ends workers, and passes their messages to the run loop.

    Args:
        spec: The run.
        selector: The supervisor's; channels and processes are registered with their callbacks.
        shared_slots: Memory for plans, which every worker maps.
        rows: Number of rows of the heartbeat page, the largest number of workers at once.
        on_message: Called with a worker's handle and each of its messages.
        on_exit: Called with the handle of a reaped worker and how it ended.
    """

    def __init__(
        self,
        spec: CellSpec,
        selector: selectors.BaseSelector,
        *,
        shared_slots: SharedSlots,
        rows: int,
        on_message: Callable[[WorkerHandle, Any], None],
        on_exit: Callable[[WorkerHandle, str], None],
    ) -> None:
        self.handles: dict[int, WorkerHandle] = {}
        self.heartbeats = HeartbeatPage.create(rows)
        self.row_count = rows
        self._spec, self._selector, self._shared_slots = spec, selector, shared_slots
        self._on_message, self._on_exit = on_message, on_exit
        self._count = 0
        self._backoffs = [Backoff(row) for row in range(rows)]
        self._logs = Path(spec.folder) / "stage"
        self.gpus = GpuAllocation(spec.gpus.uuids, spec.gpus.worker_counts)

    def __iter__(self) -> Iterator[WorkerHandle]:
        return iter(list(self.handles.values()))

    def __len__(self) -> int:
        return len(self.handles)

    def free_rows(self) -> list[int]:
        """Rows without a worker."""
        taken = {handle.row for handle in self}
        return [row for row in range(self.row_count) if row not in taken]

    def start(self, fork_server: Channel, *, role: str, row: int) -> WorkerHandle:
        """Request a worker from the fork server, in a free row.

        If the fork server has ended, the new handle is discarded together with it.

        Raises:
            StorageError: The worker's log cannot be created.
        """
        self._count += 1
        log = self._logs / f"worker-{self._count}.log"
        with disk(log):
            remove_file(log)
            descriptor = create_file(log, append=True)
        ours, theirs = pair()
        handle = WorkerHandle(
            number=self._count,
            row=row,
            role=role,
            channel=ours,
            log=log,
            started=time.monotonic(),
            backoff=self._backoffs[row],
            instance=self._free_instance() if self._is_instance(role) else -1,
            gpu=self.gpus.choose(other.gpu for other in self),
        )
        # Reset before the worker exists: its predecessor's last heartbeat would look like a hang.
        self.heartbeats.reset(row)
        fds = (theirs.fileno(), self._shared_slots.descriptor, self.heartbeats.descriptor, descriptor)
        try:
            with contextlib.suppress(BrokenPipeError):  # it has just ended, which its pidfd reports
                order = Spawn(worker=handle.number, row=row, instance=handle.instance, gpu=handle.gpu)
                fork_server.send(to_bytes(order), fds=fds)
        finally:
            theirs.close()
            os.close(descriptor)
        self.handles[handle.number] = handle
        self._selector.register(ours, selectors.EVENT_READ, lambda: self._receive(handle))
        return handle

    @property
    def has_free_gpu(self) -> bool:
        """True when some GPU has memory for one more worker."""
        return bool(self.gpus.choose(handle.gpu for handle in self))

    @property
    def instance_starts(self) -> bool:
        """Return True while an Isaac Sim instance starts: two starting at once would block each other."""
        return any(
            handle.instance >= 0 and self.heartbeats.snapshot(handle.row).phase in ("none", "start") for handle in self
        )

    def _is_instance(self, role: str) -> bool:
        """Return True if a worker of a role is an instance of Isaac Sim: renderers, and planners in PhysX."""
        return bool(self._spec.instances.executable) and (role == Role.RENDERER or self._spec.physics == "isaacsim")

    def _free_instance(self) -> int:
        taken = {handle.instance for handle in self}
        # Instances whose GPU has room come first; a user may ask for more instances than are assumed to fit.
        return next(n for n in (*self._spec.instances.fitting, *range(self.row_count + 1)) if n not in taken)

    def register_process(self, number: int, pid: int) -> None:
        """Register the process id of a forked worker."""
        handle = self.handles[number]
        handle.pid, handle.pidfd = pid, processes.open_pidfd(pid)
        self._selector.register(handle.pidfd, selectors.EVENT_READ, lambda: self._reap(handle))

    def send(self, handle: WorkerHandle, message: Message) -> None:
        """Send an order; a worker that has ended is detected through its process instead."""
        handle.channel.post(
            to_bytes(message)
        )  # never blocks; an order that finds no room in the channel is sent at the next tick

    def dump(self, handle: WorkerHandle) -> None:
        """Request a dump of a worker's stacks into its log."""
        self._signal(handle, signal.SIGUSR1)

    def kill(self, handle: WorkerHandle, *, why: str) -> None:
        """Kill a worker and all processes of its session."""
        handle.ending = handle.ending or why
        if handle.pid:
            # The whole session: components may have started processes of their own.
            processes.kill_group(handle.pid)
        self._signal(handle, signal.SIGKILL)

    def forget(self, handle: WorkerHandle) -> None:
        """Discard a worker that never got a process."""
        remove_file(handle.log)
        self._drop(handle)

    def tail(self, handle: WorkerHandle) -> str:
        """Return the end of a worker's log."""
        with contextlib.suppress(OSError), handle.log.open("rb") as log:
            log.seek(max(0, os.fstat(log.fileno()).st_size - _LOG_TAIL))
            return log.read(_LOG_TAIL).decode(errors="replace")
        return ""

    def flush(self) -> None:
        """Send messages that the channels had no room for."""
        for handle in self:
            handle.channel.flush()

    def kill_orphans(self, *, spared: Iterable[int], drain: Callable[[], None]) -> None:
        """Kill the children of ended workers, which this process has inherited.

        Args:
            spared: Process ids of other children: the fork server, and the program that measures GPUs.
            drain: Processes the fork server's messages, which may announce a new worker.
        """
        while found := processes.orphans({*spared, *(handle.pid for handle in self)}):
            # Read after the search, so that each new worker among the found processes has been announced by now.
            drain()
            orphans = set(found).difference(handle.pid for handle in self)
            for pid in orphans:
                processes.kill_group(pid)
            if any([processes.reap(pid) == processes.ALIVE for pid in orphans]):
                return  # in uninterruptible I/O: the next tick tries again, and this loop must not wait

    def _signal(self, handle: WorkerHandle, number: signal.Signals) -> None:
        if handle.pidfd >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle.pidfd, number)

    def _receive(self, handle: WorkerHandle, *, has_ended: bool = False) -> None:
        while not handle.malformed and (messages := self._next_messages(handle)):
            for message in messages:
                self._on_message(handle, message)
            if handle.is_idle and not has_ended:
                return  # its messages are usually complete by now; the selector reports later ones
        if handle.malformed or handle.channel.closed_by_peer:
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(handle.channel)

    def _next_messages(self, handle: WorkerHandle) -> Sequence[Message]:
        try:
            content = handle.channel.receive_now()
            return all_from_bytes(content) if content else []
        except ValueError as error:
            handle.malformed = True
            handle.trouble = WorkerError(sort="garbled", line=f"sent an invalid message: {error}")
            self.kill(handle, why=handle.trouble.line)
            return []

    def _reap(self, handle: WorkerHandle) -> None:
        self._receive(handle, has_ended=True)  # messages sent before its end
        how = processes.reap(handle.pid)
        self._drop(handle)
        self._on_exit(handle, how)

    def _drop(self, handle: WorkerHandle) -> None:
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(handle.channel)
        handle.channel.close()
        if handle.pidfd >= 0:
            self._selector.unregister(handle.pidfd)
            os.close(handle.pidfd)
        self.handles.pop(handle.number, None)

    def close(self) -> None:
        """Kill and reap all workers."""
        for handle in self:
            self.kill(handle, why="the run is over")
        for handle in self:
            if handle.pid:
                processes.reap(handle.pid)
            remove_file(handle.log)
            self._drop(handle)
