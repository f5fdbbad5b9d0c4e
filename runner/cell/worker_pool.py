"""The workers of a cell: started through the zygote, watched by their stamps, ended and reaped."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nimbus.datagen.store.publish import disk
from nimbus.runner.cell.queue.lease import Role
from nimbus.runner.cell.queue.restart_backoff import Backoff
from nimbus.runner.cell.transport.channel import Channel, pair
from nimbus.runner.cell.transport.messages import Spawn, Trouble, all_from_bytes, to_bytes
from nimbus.runner.cell.transport.shared_slots import Slab
from nimbus.runner.cell.transport.spec import CellSpec
from nimbus.runner.cell.worker.heartbeat import StampPage
from nimbus.runner.system import processes

_LOG_TAIL = 20_000
"""[bytes] of a worker's log that an incident keeps."""


@dataclass(kw_only=True)
class Member:
    """One worker of the crew."""

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


class Crew:
    """Starts, watches and ends workers; what they say is for the supervisor.

    Args:
        spec: The run.
        selector: The supervisor's; channels and processes are registered here, with what to call.
        slab: Given to every worker.
        seats: How many workers there can be at once.
        on_message: Called with a member and each of its messages.
        on_exit: Called with a member whose process was reaped and how it ended.
    """

    def __init__(
        self,
        spec: CellSpec,
        selector: selectors.BaseSelector,
        *,
        slab: Slab,
        seats: int,
        on_message: Callable[[Member, Any], None],
        on_exit: Callable[[Member, str], None],
    ) -> None:
        self.members: dict[int, Member] = {}
        self.stamps = StampPage.create(seats)
        self.seats = seats
        self._spec, self._selector, self._slab = spec, selector, slab
        self._on_message, self._on_exit = on_message, on_exit
        self._count = 0
        self._backoffs = [Backoff(seat) for seat in range(seats)]
        self._logs = Path(spec.folder) / "stage"

    def __iter__(self) -> Iterator[Member]:
        return iter(list(self.members.values()))

    def __len__(self) -> int:
        return len(self.members)

    def free_seats(self) -> list[int]:
        """Seats that nobody has."""
        taken = {member.seat for member in self}
        return [seat for seat in range(self.seats) if seat not in taken]

    def start(self, zygote: Channel, *, role: str, seat: int) -> Member:
        """Ask the zygote for a worker, in a free seat; one that it cannot make any more is forgotten with the zygote.

        Raises:
            StorageError: The disk does not take the worker's log.
        """
        self._count += 1
        log = self._logs / f"worker-{self._count}.log"
        with disk(log):
            descriptor = os.open(log, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o644)
        ours, theirs = pair()
        member = Member(
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
                zygote.send(to_bytes(Spawn(worker=member.number, seat=seat, instance=member.instance)), fds=fds)
        finally:
            theirs.close()
            os.close(descriptor)
        self.members[member.number] = member
        self._selector.register(ours, selectors.EVENT_READ, lambda: self._hear(member))
        return member

    @property
    def instance_starts(self) -> bool:
        """Whether an instance of Isaac Sim is on its way: two at once would wait for each other."""
        return any(
            member.instance >= 0 and self.stamps.snapshot(member.seat).phase in ("none", "start") for member in self
        )

    def _free_instance(self) -> int:
        taken = {member.instance for member in self}
        return next(number for number in range(self.seats + 1) if number not in taken)

    def born(self, number: int, pid: int) -> None:
        """The zygote says which process a worker has."""
        member = self.members[number]
        member.pid, member.pidfd = pid, processes.open_pidfd(pid)
        self._selector.register(member.pidfd, selectors.EVENT_READ, lambda: self._reap(member))

    def say(self, member: Member, message: Any) -> None:
        """Send an order; a worker that is gone will be noticed by its process."""
        member.channel.post(to_bytes(message))  # short enough: what has no room goes with the next tick

    def dump(self, member: Member) -> None:
        """Let a worker write its stacks into its log."""
        self._signal(member, signal.SIGUSR1)

    def kill(self, member: Member, *, why: str) -> None:
        """End a worker and everything in its session."""
        member.ending = member.ending or why
        if member.pid:
            processes.kill_group(member.pid)
        self._signal(member, signal.SIGKILL)

    def forget(self, member: Member) -> None:
        """Give up a worker that never got a process."""
        member.log.unlink(missing_ok=True)
        self._drop(member)

    def tail(self, member: Member) -> str:
        """The end of a worker's log."""
        with contextlib.suppress(OSError), member.log.open("rb") as log:
            log.seek(max(0, os.fstat(log.fileno()).st_size - _LOG_TAIL))
            return log.read(_LOG_TAIL).decode(errors="replace")
        return ""

    def flush(self) -> None:
        """Send what had no room."""
        for member in self:
            member.channel.flush()

    def bury_orphans(self, *, zygote: int, drain: Callable[[], None]) -> None:
        """Kill what dead workers left: their children have become this process's.

        Args:
            zygote: Its process, which is no orphan.
            drain: Takes in what the zygote has said: it may tell of a worker that is new here.
        """
        while found := processes.orphans({zygote, *(member.pid for member in self)}):
            drain()  # after the look: of whoever was there by then, it has told
            orphans = set(found).difference(member.pid for member in self)
            for pid in orphans:
                processes.kill_group(pid)
            if any([processes.reap(pid) == processes.ALIVE for pid in orphans]):
                return  # the kernel does not let go of it

    def _signal(self, member: Member, number: signal.Signals) -> None:
        if member.pidfd >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(member.pidfd, number)

    def _hear(self, member: Member, *, is_gone: bool = False) -> None:
        while not member.garbled and (messages := self._next_messages(member)):
            for message in messages:
                self._on_message(member, message)
            if member.is_idle and not is_gone:
                return  # mostly it has said all; what its writer still says, the selector tells of again
        if member.garbled or member.channel.closed_by_peer:
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(member.channel)

    def _next_messages(self, member: Member) -> list[Any]:
        try:
            content = member.channel.receive_now()
            return all_from_bytes(content) if content else []
        except ValueError as error:
            member.garbled = True
            member.trouble = Trouble(sort="garbled", line=f"said what is no message: {error}")
            self.kill(member, why=member.trouble.line)
            return []

    def _reap(self, member: Member) -> None:
        self._hear(member, is_gone=True)  # its last words
        how = processes.reap(member.pid)
        self._drop(member)
        self._on_exit(member, how)

    def _drop(self, member: Member) -> None:
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(member.channel)
        member.channel.close()
        if member.pidfd >= 0:
            self._selector.unregister(member.pidfd)
            os.close(member.pidfd)
        self.members.pop(member.number, None)

    def close(self) -> None:
        """Kill and reap everybody."""
        for member in self:
            self.kill(member, why="the run is over")
        for member in self:
            if member.pid:
                processes.reap(member.pid)
            member.log.unlink(missing_ok=True)
            self._drop(member)
