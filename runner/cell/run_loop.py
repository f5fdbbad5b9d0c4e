"""A shift: all between the loaded job and the end of the run: who works, and when it is over."""

from __future__ import annotations

import selectors
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from nimbus.datagen.errors import StorageError
from nimbus.runner.cell.disk_guard import DiskWatch
from nimbus.runner.cell.dispatcher import Dispatcher
from nimbus.runner.cell.fault_handler import Aftermath
from nimbus.runner.cell.pool_size import Staff, first_split
from nimbus.runner.cell.queue.backlog import done_before
from nimbus.runner.cell.queue.deadlines import CPU, ISAAC, Bounds, Deadlines
from nimbus.runner.cell.queue.poison import Evidence
from nimbus.runner.cell.queue.restart_backoff import Circuit
from nimbus.runner.cell.start_run import open_dataset, open_progress
from nimbus.runner.cell.status import CellStatus
from nimbus.runner.cell.transport.channel import Channel
from nimbus.runner.cell.transport.messages import Ended, Loaded, Trouble
from nimbus.runner.cell.transport.shared_slots import Slab, SlotTable
from nimbus.runner.cell.transport.spec import MOST_WORKERS, CellSpec
from nimbus.runner.cell.watchdog import Watchdog
from nimbus.runner.cell.worker_pool import Crew, Member
from nimbus.runner.system import processes

_CLOSING = 3.0
"""[s] Workers may take to leave when everything is stored; nothing depends on it."""
_BIRTH = 15.0
"""[s] The zygote may take to fork a worker."""
_FLUSH = 1.0
"""[s] Between two times that what needs no commit of its own is written into the ledger."""


class Shift:
    """The work of a run.

    Args:
        spec: What to do.
        loaded: What the zygote says about the job.
        selector: The supervisor's.
        zygote_pid: Process of the zygote.
        drain_zygote: Takes in what it has said.
        started: [s since 1970] when the run was.
        tick: [s] between two looks at everything.

    Raises:
        InputError: The folder is not a fit place for this run.
    """

    def __init__(
        self,
        spec: CellSpec,
        loaded: Loaded,
        selector: selectors.BaseSelector,
        *,
        zygote_pid: int,
        drain_zygote: Callable[[], None],
        started: float,
        tick: float,
    ) -> None:
        self.spec = spec
        self.zygote: Channel | None = None
        """Whom to ask for workers; None while there is none that can make them."""
        self.zygote_pid = zygote_pid
        self._drain_zygote = drain_zygote
        resources = spec.resources
        split = first_split(spec, has_planner=loaded.has_planner)
        slots = resources.slots or 2 * sum(split) + 2
        slab = Slab.create(slot_count=slots, slot_bytes=resources.slot_bytes)
        self.dataset, self.run = open_dataset(spec, loaded, split=split, started=started)
        self.crew = Crew(spec, selector, slab=slab, seats=MOST_WORKERS, on_message=self._hear, on_exit=self._gone)
        evidence = Evidence()
        self.circuit = Circuit(same_limit=max(6, 2 * sum(split)))
        fixed = {phase: Bounds.fixed(*limits) for phase, limits in resources.deadlines.items()}
        deadlines = Deadlines({**(ISAAC if spec.instances.executable else CPU), **fixed})
        self.watchdog = Watchdog(self.crew, deadlines, tick=tick, memory_limit=resources.memory_limit)
        before = done_before(self.dataset.ledger, spec)
        self.progress = open_progress(spec, loaded, self.dataset, before, started=started)
        self.dispatcher = Dispatcher(
            spec,
            self.dataset,
            self.crew,
            slots=SlotTable(slots),
            evidence=evidence,
            deadlines=deadlines,
            progress=self.progress,
            has_planner=loaded.has_planner,
            missing=before.missing,
            load_time=loaded.load_time,
            run=self.run.id,
        )
        self.aftermath = Aftermath(
            self.dispatcher,
            self.crew,
            evidence=evidence,
            circuit=self.circuit,
            task_text=loaded.origin.task_text,
            run=self.run.id,
        )
        self.disk = DiskWatch(self.dataset.folder, patience=resources.disk_patience)
        self.status = CellStatus(self.progress, self.dispatcher, self.aftermath, self.watchdog)
        self._next_flush = 0.0
        self._vacant = False
        """Somebody has gone since workers were last hired."""
        self.staff = Staff(spec, self.crew, self.dispatcher, split=split)
        self._disk_was_full = False
        self._drained_at: float | None = None
        self._leaving_since: float | None = None
        self._ended: Ended | None = None
        self.progress.flush()

    # The loop

    def go_on(self, now: float, *, is_tick: bool) -> Ended | None:
        """Do what is due; how the run ended, once everybody is gone.

        Args:
            now: [s] of the monotonic clock.
            is_tick: Time to look at everything.
        """
        if self.dispatcher.intake.is_due(now) and not self.disk.is_full:
            with self.disk.guard(now):
                if self.dispatcher.intake.commit():
                    self.disk.worked()
        if is_tick:
            self.crew.flush()
            self.dispatcher.reconsider()  # what changed without a word is seen here: nobody waits longer than a tick
            self.watchdog.look(now)
            status = self.progress.status
            self.disk.look(now, needed=2 * len(self.crew) * status.byte_count // max(1, status.stored))
            self.staff.look(now)
            self._wait_for_births(now)
            self._tell_of_disk()
            if now >= self._next_flush:
                self._next_flush = now + _FLUSH
                with self.disk.guard(now):
                    self.dataset.flush()
            self.status.tell()
        self._ended = self._ended or self._verdict(now)
        if self._ended:
            return self._leave(now)
        if (is_tick or self._vacant) and self.zygote and self._drained_at is None and not self.disk.is_full:
            self._vacant = False
            with self.disk.guard(now):
                self.staff.hire(self.zygote, now)
        self._employ()
        return None

    @property
    def next_commit(self) -> float | None:
        """[s] of the monotonic clock, when something must be committed; None when nothing waits, or has to wait."""
        return None if self.disk.is_full else self.dispatcher.intake.next_commit

    def drain(self, now: float) -> None:
        """Hand out nothing more; what is under way may end."""
        if self._drained_at is None:
            self._drained_at = now
            self.progress.activity("stopping after what is under way")

    def zygote_gone(self) -> None:
        """The zygote has died: what it was asked for last will not come."""
        self.zygote, self.zygote_pid = None, 0
        self._bury_orphans()
        for member in self.crew:
            if not member.pid:
                self.crew.forget(member)

    def born(self, number: int, pid: int) -> None:
        """The zygote says which process a worker has."""
        self.crew.born(number, pid)

    def close(self) -> None:
        """End everybody, and write how the run ended."""
        self.crew.close()
        state = self._ended.state if self._ended else "failed"
        with suppress(StorageError):
            self.dispatcher.intake.commit()
        self.status.finish(state)
        with suppress(StorageError):
            self.dataset.ledger.end_run(
                self.run,
                state=state,
                wall_seconds=self.progress.status.elapsed,
                startup_seconds=self.progress.status.startup_seconds,
            )
        self.dataset.close()

    def _verdict(self, now: float) -> Ended | None:
        if line := self.disk.complaint(now):
            return Ended(code=1, state="failed", line=line)
        if self.circuit.is_open:
            line = f"{self.circuit.reason}; the last fault is in {self.dataset.folder / self.aftermath.incident}"
            return Ended(code=1, state="failed", line=line)
        if self.dispatcher.is_done:
            done = self.progress.status.already_stored + self.progress.status.stored == self.spec.target
            return Ended(code=0, state="done") if done else Ended(code=1, state="short")
        if self._drained_at is not None:
            busy = any(not member.is_idle or member.flushing for member in self.crew if not member.stopped)
            if not busy or now - self._drained_at > self.spec.resources.grace:
                return Ended(code=130, state="interrupted")
        return None

    def _leave(self, now: float) -> Ended | None:
        """Let everybody go; nothing is lost with those who take too long."""
        assert self._ended
        self._leaving_since = self._leaving_since or now
        for member in self.crew:
            if member.is_idle:
                self.dispatcher.dismiss(member)
            elif not member.stopped and self._ended.state not in ("done", "short"):
                self.crew.kill(member, why="the run is over")
                member.stopped = True
        if len(self.crew) and now - self._leaving_since < _CLOSING:
            return None
        return self._ended

    def _employ(self) -> None:
        """Give everybody who is free something to do."""
        self.staff.make_room_for_solo()
        for member in self.crew:
            if not member.is_idle or member.stopped:
                continue
            if member.retiring or self._drained_at is not None:
                if not member.flushing:
                    self.dispatcher.dismiss(member)
            elif not self.disk.is_full:
                self.dispatcher.give(member)

    def _hear(self, member: Member, message: Any) -> None:
        if isinstance(message, Trouble):
            member.trouble = message
            return
        self.dispatcher.take(member, message)  # what it brings is written with the next commit

    def _gone(self, member: Member, how: str) -> None:
        now = time.monotonic()
        self._vacant = True
        trouble = member.trouble
        if isinstance(trouble, Trouble) and trouble.sort == "storage":
            self.disk.full(now, trouble.line)
        if isinstance(trouble, Trouble) and trouble.sort == "input":
            self._ended = self._ended or Ended(code=trouble.code, state="failed", line=trouble.line)
        if self._ended:
            self.dispatcher.lost(member)
            member.log.unlink(missing_ok=True)
            return
        with self.disk.guard(now):
            self.staff.rest(member.seat, now + self.aftermath.of(member, how))
        self._bury_orphans()

    def _wait_for_births(self, now: float) -> None:
        """End a zygote that takes too long; it will be replaced."""
        for member in self.crew:
            waited = 0.0 if member.pid else now - member.started
            if self.zygote_pid and waited - self.watchdog.amnesty.forgiven(waited) > _BIRTH:
                processes.kill_group(self.zygote_pid)
                return

    def _bury_orphans(self) -> None:
        self.crew.bury_orphans(zygote=self.zygote_pid, drain=self._drain_zygote)

    def _tell_of_disk(self) -> None:
        full = self.disk.is_full
        if full is not self._disk_was_full:
            self._disk_was_full = full
            self.progress.tell("the disk is full: waiting for room" if full else "the disk has room again", kind="disk")
            self.progress.activity("waiting for room on the disk" if full else "")
