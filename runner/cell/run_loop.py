"""Run loop of the supervisor, from the loaded job to the end of the run."""

from __future__ import annotations

import selectors
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from nimbus.datagen.errors import StorageError
from nimbus.datagen.files.own_files import remove_file
from nimbus.runner.cell.disk_guard import DiskGuard, SpoolGuard
from nimbus.runner.cell.dispatcher import Dispatcher
from nimbus.runner.cell.fault_handler import FaultHandler
from nimbus.runner.cell.missing_work import completed_before
from nimbus.runner.cell.pool_size import PoolSizer, first_split
from nimbus.runner.cell.queue.deadlines import CPU, ISAAC, Bounds, Deadlines
from nimbus.runner.cell.queue.poison import PoisonDetector
from nimbus.runner.cell.queue.restart_backoff import Circuit
from nimbus.runner.cell.start_run import open_dataset, open_progress
from nimbus.runner.cell.status import CellStatus
from nimbus.runner.cell.transport.channel import Channel
from nimbus.runner.cell.transport.messages import Ended, Loaded, WorkerError
from nimbus.runner.cell.transport.shared_slots import SharedSlots, SlotTable
from nimbus.runner.cell.transport.spec import MOST_WORKERS, CellSpec
from nimbus.runner.cell.watchdog import Watchdog
from nimbus.runner.cell.worker_pool import WorkerHandle, WorkerPool
from nimbus.runner.system import processes

_CLOSING = 3.0
"""Longest time for workers to exit after everything is stored [s]."""
_SPAWN_LIMIT = 15.0
"""Longest time for the fork server to fork a worker [s]."""
_FLUSH = 1.0
"""Interval between two ledger writes of records that need no immediate commit [s]."""


_MOST_SLOTS = 256
"""Largest number of shared slots that lockstep planning asks for."""


class RunLoop:
    """Runs the workers until everything is stored, the run is stopped, or it fails.

    Args:
        spec: The run.
        loaded: The fork server's description of the job.
        selector: The supervisor's selector.
        fork_server_pid: Process id of the fork server.
        drain_fork_server: Processes the messages that the fork server has sent.
        started: Start of the run [s since 1970].
        tick: Interval of the periodic checks [s].

    Raises:
        InputError: The folder cannot hold this run.
    """

    def __init__(
        self,
        spec: CellSpec,
        loaded: Loaded,
        selector: selectors.BaseSelector,
        *,
        fork_server_pid: int,
        drain_fork_server: Callable[[], None],
        started: float,
        tick: float,
    ) -> None:
        self.spec = spec
        self.fork_server: Channel | None = None
        """Channel to the fork server; None while it is loading, or after its end."""
        self.fork_server_pid = fork_server_pid
        self._drain_fork_server = drain_fork_server
        resources = spec.resources
        split = first_split(spec, has_planner=loaded.has_planner)
        self.dataset, self.run = open_dataset(spec, loaded, split=split, started=started)
        # In lockstep a planner holds a slot for each lane while as many plans wait for a renderer.
        lockstep = min(_MOST_SLOTS, 2 * loaded.lanes * split[0]) if loaded.lanes > 1 else 0
        slots = max(resources.slot_count(sum(split)), lockstep)
        shared_slots = SharedSlots.create(slot_count=slots, slot_bytes=resources.slot_bytes)
        self.pool = WorkerPool(
            spec,
            selector,
            shared_slots=shared_slots,
            rows=MOST_WORKERS,
            on_message=self._take_message,
            on_exit=self._note_exit,
        )
        evidence = PoisonDetector()
        self.circuit = Circuit(same_limit=max(6, 2 * sum(split)))
        fixed = {phase: Bounds.fixed(*limits) for phase, limits in resources.deadlines.items()}
        deadlines = Deadlines({**(ISAAC if spec.instances.executable else CPU), **fixed})
        self.watchdog = Watchdog(self.pool, deadlines, tick=tick, memory_limit=resources.memory_limit)
        before = completed_before(self.dataset.ledger, spec)
        self.progress = open_progress(spec, loaded, self.dataset, before, started=started)
        self._compiles = loaded.compiles
        self.dispatcher = Dispatcher(
            spec,
            self.dataset,
            self.pool,
            slots=SlotTable(slots),
            evidence=evidence,
            deadlines=deadlines,
            progress=self.progress,
            has_planner=loaded.has_planner,
            missing=before.missing,
            load_time=loaded.load_time,
            run=self.run.id,
            lanes=loaded.lanes,
        )
        self.fault_handler = FaultHandler(
            self.dispatcher,
            self.pool,
            evidence=evidence,
            circuit=self.circuit,
            task_text=loaded.origin.task_text,
            run=self.run.id,
        )
        self.disk = DiskGuard(self.dataset.folder, patience=resources.disk_patience)
        self.spool = SpoolGuard(self.dataset.folder, limit=resources.spool_bytes)
        self.status = CellStatus(self.progress, self.dispatcher, self.fault_handler, self.watchdog)
        self._next_flush = 0.0
        self._vacant = False
        """True when a worker has ended since workers were last started."""
        self.sizer = PoolSizer(spec, self.pool, self.dispatcher, split=split)
        self._disk_was_full = False
        self._drained_at: float | None = None
        self._leaving_since: float | None = None
        self._ended: Ended | None = None
        self.progress.flush()

    # The loop

    def go_on(self, now: float, *, is_tick: bool) -> Ended | None:
        """Perform all due work; returns the result of the run once all workers have ended.

        Args:
            now: Monotonic time [s].
            is_tick: True when the periodic checks are due.
        """
        if self.dispatcher.commits.is_due(now) and not self.disk.is_full:
            with self.disk.guard(now):
                if self.dispatcher.commits.commit():
                    self.disk.worked()
        if is_tick:
            self.pool.flush()
            with self.disk.guard(now):
                # Reading the feed may remove rows from the ledger, hence the guard.
                self.dispatcher.look_at_feed()
            self.dispatcher.reconsider()  # a change that sent no message takes effect here, at the next tick
            self.watchdog.look(now)
            status = self.progress.status
            # Space for two episodes of mean size for each worker, so that the disk does not fill up again at once.
            self.disk.look(now, needed=2 * len(self.pool) * status.byte_count // max(1, status.stored))
            self.sizer.look(now)
            self._check_spawns(now)
            self._report_disk()
            if self.spool.look(now):
                full = self.spool.is_full
                self.progress.tell(
                    "the spool is full: waiting for the store" if full else "the spool has room", kind="disk"
                )
                self.progress.activity("waiting for the store: the spool is full" if full else "")
            if now >= self._next_flush:
                self._next_flush = now + _FLUSH
                with self.disk.guard(now):
                    self.dataset.flush()
            self.status.write()
        # The first verdict stays: workers that are killed while the run ends must not turn it into another one.
        self._ended = self._ended or self._verdict(now)
        if self._ended:
            return self._leave(now)
        # A lost worker is replaced at once; all other changes of rows wait for the next tick.
        if (is_tick or self._vacant) and self.fork_server and self._drained_at is None and not self.disk.is_full:
            self._vacant = False
            with self.disk.guard(now):
                self.sizer.spawn(self.fork_server, now)
        self._give_orders()
        return None

    @property
    def next_commit(self) -> float | None:
        """Time of the next commit [s monotonic]; None when no result waits or the disk is full."""
        return None if self.disk.is_full else self.dispatcher.commits.next_commit

    def drain(self, now: float) -> None:
        """Stop handing out work; work in progress may finish."""
        if self._drained_at is None:
            self._drained_at = now
            self.progress.activity("stopping after the work in progress")

    def fork_server_ready(self, fork_server: Channel) -> None:
        """Accept the fork server's channel once its kernels are compiled."""
        self.fork_server = fork_server
        if self._compiles:
            self._compiles = False
            self.progress.end_phase("compile", following="starting workers")

    def fork_server_ended(self) -> None:
        """Handle the end of the fork server: workers requested last will not start."""
        self.fork_server, self.fork_server_pid = None, 0
        self._kill_orphans()
        for handle in self.pool:
            # The fork server cannot answer the request for this worker any more, and a worker without a process never
            # exits: it is forgotten here.
            if not handle.pid:
                self.pool.forget(handle)

    def register_process(self, number: int, pid: int) -> None:
        """Register the process id of a forked worker."""
        self.pool.register_process(number, pid)

    def close(self) -> None:
        """End all workers and write the result of the run."""
        self.pool.close()
        # Workers end first. Their last results are committed after that, when no more can follow.
        state = self._ended.state if self._ended else "failed"
        with suppress(StorageError):
            self.dispatcher.commits.commit()
        self.status.finish(state)
        with suppress(StorageError):
            self.dataset.ledger.end_run(
                self.run,
                state=state,
                wall_seconds=self.progress.status.elapsed,
                startup_seconds=self.progress.status.startup_seconds,
                busy=self.progress.status.busy_times,
            )
        self.dataset.close()

    def _verdict(self, now: float) -> Ended | None:
        if line := self.disk.complaint(now):
            return Ended(code=1, state="failed", line=line)
        if self.circuit.is_open:
            line = f"{self.circuit.reason}; the last fault is in {self.dataset.folder / self.fault_handler.incident}"
            return Ended(code=1, state="failed", line=line)
        if self.dispatcher.is_done:
            stored = self.progress.status.already_stored + self.progress.status.stored
            done = self.spec.feed or stored == self.spec.target
            return Ended(code=0, state="done") if done else Ended(code=1, state="short")
        if self._drained_at is not None:
            is_busy = any(handle.is_working for handle in self.pool if not handle.stopped)
            if not is_busy or now - self._drained_at > self.spec.resources.grace:
                return Ended(code=130, state="interrupted")
        return None

    def _leave(self, now: float) -> Ended | None:
        """Stop all workers; those that take too long are killed, which loses nothing."""
        assert self._ended
        self._leaving_since = self._leaving_since or now
        for handle in self.pool:
            if handle.is_idle:
                self.dispatcher.stop_worker(handle)
            elif not handle.stopped and self._ended.state not in ("done", "short"):
                self.pool.kill(handle, why="the run is over")
                handle.stopped = True
        if len(self.pool) and now - self._leaving_since < _CLOSING:
            return None
        return self._ended

    def _give_orders(self) -> None:
        """Give orders to each idle worker."""
        self.sizer.make_room_for_isolated()
        for handle in self.pool:
            if not handle.is_idle or handle.stopped:
                if handle.room and not (handle.retiring or handle.ending or self._drained_at) and self._has_space:
                    self.dispatcher.top_up(handle)
                continue
            if handle.retiring or self._drained_at is not None:
                if not handle.flushing:
                    self.dispatcher.stop_worker(handle)
            elif self._has_space:
                self.dispatcher.give(handle)

    @property
    def _has_space(self) -> bool:
        return not self.disk.is_full and not self.spool.is_full

    def _take_message(self, handle: WorkerHandle, message: Any) -> None:
        if isinstance(message, WorkerError):
            handle.trouble = message
            return
        self.dispatcher.take(handle, message)  # its results are written with the next commit

    def _note_exit(self, handle: WorkerHandle, how: str) -> None:
        now = time.monotonic()
        self._vacant = True
        trouble = handle.trouble
        if trouble and trouble.sort == "storage":
            self.disk.full(now, trouble.line)
        if trouble and trouble.sort == "input":
            self._ended = self._ended or Ended(code=trouble.code, state="failed", line=trouble.line)
        if self._ended:
            self.dispatcher.take_back(handle)
            remove_file(handle.log)
            return
        with self.disk.guard(now):
            self.sizer.rest(handle.row, now + self.fault_handler.handle_exit(handle, how))
        self._kill_orphans()

    def _check_spawns(self, now: float) -> None:
        """Kill a fork server that takes too long to fork; the supervisor restarts it."""
        for handle in self.pool:
            waited = 0.0 if handle.pid else now - handle.started
            if self.fork_server_pid and waited - self.watchdog.amnesty.forgiven(waited) > _SPAWN_LIMIT:
                processes.kill_group(self.fork_server_pid)
                return

    def _kill_orphans(self) -> None:
        self.pool.kill_orphans(spared=(self.fork_server_pid, self.progress.meter_pid), drain=self._drain_fork_server)

    def _report_disk(self) -> None:
        full = self.disk.is_full
        if full is not self._disk_was_full:
            self._disk_was_full = full
            self.progress.tell("the disk is full: waiting for room" if full else "the disk has room again", kind="disk")
            self.progress.activity("waiting for room on the disk" if full else "")
