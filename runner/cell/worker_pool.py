"""The workers of a cell: started through the fork server, watched by their stamps, ended and reaped."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nimbus.datagen.store.publish import disk
from nimbus.runner.cell.queue.lease import Role
from nimbus.runner.cell.queue.restart_backoff import Backoff
from nimbus.runner.cell.transport.channel import Channel, pair
from nimbus.runner.cell.transport.messages import Message, Spawn, WorkerError, all_from_bytes, to_bytes
from nimbus.runner.cell.transport.shared_slots import Slab
from nimbus.runner.cell.transport.spec import CellSpec
from nimbus.runner.cell.worker.heartbeat import HeartbeatPage
from nimbus.runner.system import processes

_LOG_TAIL = 20_000
"""[bytes] of a worker's log that an incident keeps."""


@dataclass(kw_only=True)
class WorkerHandle:
    """One worker of the worker pool."""

    number: int
    """Counts all workers of a run."""
    seat: int
    """Row in the page of stamps and in the report's timeline; a successor takes the seat."""
    role: str
    channel: Channel
    log: Path
    started: float
    pid: int = 0
    pidfd: int = -1
    orders: int = 0
    """Given so far."""
    done: int = 0
    """Carried out of these, as far as it told."""
    ordered: float = 0.0
    """When the last ones were given [s monotonic]."""
    ordered_as: str = ""
    """Role that those were for; its own may have changed since."""
    is_idle: bool = False
    flushing: bool = False
    idle_at: int = -1
    """State of the work in which there was nothing for it, see :meth:`Dispatcher.reconsider`."""
    roles: tuple[str, ...] = ()
    results: int = 0
    """Plans, rejections and stored episodes so far."""
    backoff: Backoff
    """Of its seat."""
    instance: int = -1
    """Number of the instance of Isaac Sim that it is; -1: none."""
    solo: int | None = None
    """Index of the episode that it was started for alone."""
    retiring: str = ""
    """Why it is to leave after what it does now."""
    stopped: bool = False
    """It was told to leave."""
    ending: str = ""
    """The limit for which it was killed."""
    suspected: bool = False
    """Its stacks were written, because half of a limit is over."""
    garbled: bool = False
    """It said what is no message: it is not listened to any more."""
    trouble: Any = None
    """What it said before it left."""

    @property
    def is_fresh(self) -> bool:
        """It has done nothing yet."""
        return self.orders == 0


class WorkerPool:
    """Starts, watches and ends workers; what they say is for the supervisor.

    Args:
        spec: The run.
        selector: The supervisor's; channels and processes are registered here, with what to call.
        slab: Given to every worker.
        seats: How many workers there can be at once.
        on_message: Called with a worker's handle and each of its messages.
        on_exit: Called with a member whose process was reaped and how it ended.
    """

    def __init__(
        self,
        spec: CellSpec,
        selector: selectors.BaseSelector,
        *,
        slab: Slab,
        seats: int,
        on_message: Callable[[WorkerHandle, Any], None],
        on_exit: Callable[[WorkerHandle, str], None],
    ) -> None:
        self.handles: dict[int, WorkerHandle] = {}
        self.stamps = HeartbeatPage.create(seats)
        self.seats = seats
        self._spec, self._selector, self._slab = spec, selector, slab
        self._on_message, self._on_exit = on_message, on_exit
        self._count = 0
        self._backoffs = [Backoff(seat) for seat in range(seats)]
        self._logs = Path(spec.folder) / "stage"

    def __iter__(self) -> Iterator[WorkerHandle]:
        return iter(list(self.handles.values()))

    def __len__(self) -> int:
        return len(self.handles)

    def free_seats(self) -> list[int]:
        """Seats that nobody has."""
        taken = {handle.seat for handle in self}
        return [seat for seat in range(self.seats) if seat not in taken]

    def start(self, fork_server: Channel, *, role: str, seat: int) -> WorkerHandle:
        """Ask the fork server for a worker, in a free seat.

        A worker that it cannot make any more is forgotten with the fork server.

        Raises:
            StorageError: The disk does not take the worker's log.
        """
        self._count += 1
        log = self._logs / f"worker-{self._count}.log"
        with disk(log):
            descriptor = os.open(log, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o644)
        ours, theirs = pair()
        handle = WorkerHandle(
            number=self._count,
            seat=seat,
            role=role,
            channel=ours,
            log=log,
            started=time.monotonic(),
            backoff=self._backoffs[seat],
            instance=self._free_instance() if self._spec.instances.executable and role == Role.RENDERER else -1,
        )
        self.stamps.reset(seat)
        fds = (theirs.fileno(), self._slab.descriptor, self.stamps.descriptor, descriptor)
        try:
            with contextlib.suppress(BrokenPipeError):  # it has just died, which its process will tell
                fork_server.send(to_bytes(Spawn(worker=handle.number, seat=seat, instance=handle.instance)), fds=fds)
        finally:
            theirs.close()
            os.close(descriptor)
        self.handles[handle.number] = handle
        self._selector.register(ours, selectors.EVENT_READ, lambda: self._hear(handle))
        return handle

    @property
    def instance_starts(self) -> bool:
        """Whether an instance of Isaac Sim is on its way: two at once would wait for each other."""
        return any(
            handle.instance >= 0 and self.stamps.snapshot(handle.seat).phase in ("none", "start") for handle in self
        )

    def _free_instance(self) -> int:
        taken = {handle.instance for handle in self}
        return next(number for number in range(self.seats + 1) if number not in taken)

    def born(self, number: int, pid: int) -> None:
        """The fork server says which process a worker has."""
        handle = self.handles[number]
        handle.pid, handle.pidfd = pid, processes.open_pidfd(pid)
        self._selector.register(handle.pidfd, selectors.EVENT_READ, lambda: self._reap(handle))

    def say(self, handle: WorkerHandle, message: Message) -> None:
        """Send an order; a worker that is gone will be noticed by its process."""
        handle.channel.post(to_bytes(message))  # short enough: what has no room goes with the next tick

    def dump(self, handle: WorkerHandle) -> None:
        """Let a worker write its stacks into its log."""
        self._signal(handle, signal.SIGUSR1)

    def kill(self, handle: WorkerHandle, *, why: str) -> None:
        """End a worker and everything in its session."""
        handle.ending = handle.ending or why
        if handle.pid:
            processes.kill_group(handle.pid)
        self._signal(handle, signal.SIGKILL)

    def forget(self, handle: WorkerHandle) -> None:
        """Give up a worker that never got a process."""
        handle.log.unlink(missing_ok=True)
        self._drop(handle)

    def tail(self, handle: WorkerHandle) -> str:
        """The end of a worker's log."""
        with contextlib.suppress(OSError), handle.log.open("rb") as log:
            log.seek(max(0, os.fstat(log.fileno()).st_size - _LOG_TAIL))
            return log.read(_LOG_TAIL).decode(errors="replace")
        return ""

    def flush(self) -> None:
        """Send what had no room."""
        for handle in self:
            handle.channel.flush()

    def kill_orphans(self, *, fork_server: int, drain: Callable[[], None]) -> None:
        """Kill what dead workers left: their children have become this process's.

        Args:
            fork_server: Its process, which is no orphan.
            drain: Takes in what the fork server has said: it may tell of a worker that is new here.
        """
        while found := processes.orphans({fork_server, *(handle.pid for handle in self)}):
            drain()  # after the look: of whoever was there by then, it has told
            orphans = set(found).difference(handle.pid for handle in self)
            for pid in orphans:
                processes.kill_group(pid)
            if any([processes.reap(pid) == processes.ALIVE for pid in orphans]):
                return  # the kernel does not let go of it

    def _signal(self, handle: WorkerHandle, number: signal.Signals) -> None:
        if handle.pidfd >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle.pidfd, number)

    def _hear(self, handle: WorkerHandle, *, is_gone: bool = False) -> None:
        while not handle.garbled and (messages := self._next_messages(handle)):
            for message in messages:
                self._on_message(handle, message)
            if handle.is_idle and not is_gone:
                return  # mostly it has said all; what its writer still says, the selector tells of again
        if handle.garbled or handle.channel.closed_by_peer:
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(handle.channel)

    def _next_messages(self, handle: WorkerHandle) -> Sequence[Message]:
        try:
            content = handle.channel.receive_now()
            return all_from_bytes(content) if content else []
        except ValueError as error:
            handle.garbled = True
            handle.trouble = WorkerError(sort="garbled", line=f"said what is no message: {error}")
            self.kill(handle, why=handle.trouble.line)
            return []

    def _reap(self, handle: WorkerHandle) -> None:
        self._hear(handle, is_gone=True)  # its last words
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
        """Kill and reap everybody."""
        for handle in self:
            self.kill(handle, why="the run is over")
        for handle in self:
            if handle.pid:
                processes.reap(handle.pid)
            handle.log.unlink(missing_ok=True)
            self._drop(handle)
