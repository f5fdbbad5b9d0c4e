"""Dispatcher of a run: orders for idle workers, their results, and the leases of lost workers."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from nimbus.datagen.errors import StorageError
from nimbus.datagen.store.dataset import Dataset
from nimbus.datagen.store.ledger.attempt import Attempt
from nimbus.datagen.store.ledger.records import TimeSpan
from nimbus.runner.cell.commit_queue import CommitQueue
from nimbus.runner.cell.feed import Feed
from nimbus.runner.cell.lease_chooser import LeaseChooser
from nimbus.runner.cell.missing_work import missing_work
from nimbus.runner.cell.plan_slots import PlanSlots
from nimbus.runner.cell.queue.deadlines import Deadlines
from nimbus.runner.cell.queue.lease import Lease, Role, Settled
from nimbus.runner.cell.queue.poison import PoisonDetector
from nimbus.runner.cell.queue.throughput import Throughput
from nimbus.runner.cell.queue.work_queue import WorkQueue
from nimbus.runner.cell.start_costs import StartCosts
from nimbus.runner.cell.transport.messages import (
    EpisodeWritten,
    Idle,
    PlanMade,
    PlanOrder,
    Recorded,
    Refill,
    RenderOrder,
    Stop,
    Times,
)
from nimbus.runner.cell.transport.shared_slots import SlotTable
from nimbus.runner.cell.transport.spec import CellSpec
from nimbus.runner.cell.worker_pool import WorkerHandle, WorkerPool
from nimbus.runner.monitor.progress import Progress, line, stored_of
from nimbus.runner.monitor.span_merger import SpanMerger, Stay


class Dispatcher:
    """Assigns leases to workers and passes their results to the commit queue.

    Args:
        spec: The run.
        dataset: Opened by this process, which alone writes it.
        pool: The workers.
        slots: Allocation table of the pool's shared slots.
        evidence: Counts the leases that ended well.
        deadlines: Learns from the durations of phases.
        progress: Status and events of the run.
        has_planner: True when planning is a separate role.
        missing: Number of indices with an unsettled variant.
        load_time: CPU time of loading [s]; recorded with the first attempt.
        run: Number of the run in the ledger.
        lanes: Number of episodes that a planner advances together.
    """

    def __init__(
        self,
        spec: CellSpec,
        dataset: Dataset,
        pool: WorkerPool,
        *,
        slots: SlotTable,
        evidence: PoisonDetector,
        deadlines: Deadlines,
        progress: Progress,
        has_planner: bool,
        missing: int,
        load_time: float,
        run: int,
        lanes: int = 1,
    ) -> None:
        self.spec, self.dataset, self.pool = spec, dataset, pool
        self.evidence, self.deadlines, self.progress = evidence, deadlines, progress
        self.has_planner, self.lanes = has_planner, lanes
        self._feed = Feed(dataset.ledger, spec) if spec.feed else None
        requests = self._feed or missing_work(dataset.ledger, spec)
        self.work = WorkQueue(requests, total=missing, is_ordered=self._feed is None, has_planner=has_planner)
        self._expect_fed()
        self.throughput = Throughput()
        self.start_costs = StartCosts(spec.instances.folder)
        self._run, self._merger = run, SpanMerger(started=time.time())
        self.plan_slots = PlanSlots(dataset.folder, slots)
        self.leases = LeaseChooser(
            spec,
            dataset,
            pool,
            work=self.work,
            plan_slots=self.plan_slots,
            throughput=self.throughput,
            evidence=evidence,
            has_planner=has_planner,
            lanes=lanes,
        )
        self.commits = CommitQueue(dataset, self, load_time=load_time)
        self.switches = 0
        self.orders = 0
        """Number of orders given so far."""
        self.results = 0
        """Number of plans, rejections and commits so far; the supervisor treats an increase as progress."""
        self._changes = 0
        """Revision of the available work; an idle worker is considered again when it has grown."""
        self._reported: dict[int, set[int]] = {}
        """Attempts that the progress has counted, by index."""
        self._lost_workers: set[int] = set()
        """Workers that ended while one of their results waited in the commit queue."""

    # Orders

    def give(self, handle: WorkerHandle) -> bool:
        """Send orders to an idle worker; return False when no work suits it now."""
        if handle.idle_at == self._changes:
            return False
        lease = self.leases.lease_for(handle)
        if lease is None:
            handle.idle_at = self._changes
            return False
        # Further leases are chosen after the first one, whose index they then cannot take.
        leases = [lease, *self.leases.more_like(lease, handle)]
        if not self.orders:
            self.progress.end_phase("workers")
            self.progress.ready()
            self.progress.activity("making the first episodes")
        self.orders += len(leases)
        if lease.role is not handle.role:
            self.reconsider()
            self.switches += 1
            self.progress.tell(f"worker {handle.number}: {handle.role} becomes {lease.role}", kind="role")
            handle.role = lease.role
        # Evidence against an episode needs a worker without a history, see PoisonDetector.
        handle.only_index = lease.index if handle.is_fresh else None
        handle.is_idle, handle.orders = False, handle.orders + len(leases)
        handle.ordered, handle.ordered_as = time.monotonic(), lease.role
        orders = tuple(self.leases.order(each, handle) for each in leases)
        plans = lease.role is Role.PLANNER or not self.has_planner
        lanes = self.lanes if self.leases.fits_lockstep(lease, handle) else 0
        self.pool.send(handle, PlanOrder(orders=orders, lanes=lanes) if plans else RenderOrder(orders=orders))
        return True

    def top_up(self, handle: WorkerHandle) -> bool:
        """Send the further orders that a worker in lockstep has requested; return False when there are none.

        Only indices that were never lost are sent. An index at which a worker died is planned alone, so that a second
        death can be charged to it.
        """
        leases = self.leases.draw_fresh(handle, handle.room)
        if not leases:
            return False
        handle.room -= len(leases)
        handle.orders, self.orders = handle.orders + len(leases), self.orders + len(leases)
        orders = tuple(self.leases.order(each, handle) for each in leases)
        self.pool.send(handle, PlanOrder(orders=orders, lanes=self.lanes))
        return True

    def reconsider(self) -> None:
        """Make :meth:`give` consider idle workers again, after a change of the work or of the workers.

        Called after changes that must take effect at once; the run loop's tick covers all other changes.
        """
        self._changes += 1

    def look_at_feed(self) -> None:
        """Queue the indices that were added to the feed since the last call.

        Raises:
            StorageError: The disk is full.
        """
        if self._feed and self._feed.look():
            self._expect_fed()

    def _expect_fed(self) -> None:
        if self._feed:
            self.work.expect(self._feed.total)
            self.progress.update(target=self._feed.total * self.spec.variants)

    def stop_worker(self, handle: WorkerHandle) -> None:
        """Order an idle worker to exit."""
        handle.stopped, handle.is_idle = True, False
        handle.ordered = time.monotonic()
        self.pool.send(handle, Stop())

    # Results

    def take(self, handle: WorkerHandle, message: Any) -> None:
        """Process a worker's message."""
        match message:
            case Idle():
                self._take_idle(handle, message)
            case Refill():
                self._take_refill(handle, message)
            case Recorded():
                self.commits.record(handle, message)
            case EpisodeWritten():
                self._take_written(handle, message)
            case PlanMade():
                self._take_plan(handle, message)
            case Times():
                self._take_times(handle, message)

    def _take_refill(self, handle: WorkerHandle, message: Refill) -> None:
        self._take_times(handle, message)
        self._note_done(handle, message)
        handle.room = message.room

    def _note_done(self, handle: WorkerHandle, message: Idle | Refill) -> None:
        if handle.ordered_as and (count := message.done - handle.done) > 0:
            role = Role(handle.ordered_as)
            self.throughput.record(role, message.seconds, count=count, is_first=role not in handle.roles)
            handle.done = message.done

    def _take_idle(self, handle: WorkerHandle, message: Idle) -> None:
        self._take_times(handle, message)
        if handle.instance >= 0 and handle.is_fresh and not handle.is_idle:
            self.start_costs.record(time.monotonic() - handle.started)
        self._note_done(handle, message)
        handle.room = 0
        if message.done < handle.orders:
            return  # sent before the last order arrived
        handle.is_idle, handle.flushing, handle.roles = True, message.flushing, message.roles
        if not message.flushing:
            self._end_without_result(handle)

    def _end_without_result(self, handle: WorkerHandle) -> None:
        """End a worker whose components gave no result for an episode; this counts as a death."""
        if not (held := self.work.held_by(handle.number)):
            return
        waiting = self.commits.indices
        # An episode that waits in the commit queue has a result; only one without any counts against the worker.
        for lease in held:
            if lease.index not in waiting:
                handle.unfinished = lease.index
                handle.is_idle = False  # no further orders before it ends
                self.pool.kill(handle, why=f"episode {lease.index} ended without a result")
                return

    def _take_written(self, handle: WorkerHandle, message: EpisodeWritten) -> None:
        # The slot is freed once the files are complete, before they are committed, so that short episodes do not wait
        # for the next commit. If a file is lost before its commit, the plan is made again.
        place = self.work.rendered(message.index, message.attempt.variant, lease=message.lease)
        if place is not None:
            if not self.plan_slots.free_count:
                self.reconsider()
            self.plan_slots.free(place)
        self.commits.store(handle, message)

    def _take_plan(self, handle: WorkerHandle, message: PlanMade) -> None:
        self.reconsider()
        place = self.plan_slots.mark_ready(handle.number, message.index, message.lease, in_file=message.spilled)
        if self.work.planned(message.index, place, lease=message.lease):
            self._ended_well(handle, message.index, Role.PLANNER)
            self.throughput.planned(True)
        else:
            self.plan_slots.free(place)

    def _take_times(self, handle: WorkerHandle, message: Times) -> None:
        for phase, gap, total in message.gaps:
            self.deadlines.observe(phase, gap, total)
        if message.spans:
            self._note(handle, self._merger.take(str(handle.row), message.spans))

    def _note(self, handle: WorkerHandle, spans: Iterable[Stay]) -> None:
        row, run = str(handle.row), self._run
        self.dataset.spans(TimeSpan(run=run, worker=row, stage=stage, idx=-1, begin=a, end=b) for stage, a, b in spans)

    # Called by the commit queue

    def note_failed(self, handle: WorkerHandle, message: Recorded) -> None:
        """Process failed attempts that are now in the ledger."""
        self.reconsider()
        held = self.work.held_by(handle.number)
        role = next((lease.role for lease in held if lease.index == message.index), Role.RENDERER)
        for attempt in message.attempts:
            self._report(attempt)
            if attempt.final and self._settle(attempt, Settled.REJECTED, handle, role) and role is Role.PLANNER:
                self.plan_slots.withdraw(handle.number, attempt.idx)
                self.throughput.planned(False)
        self._return_rest(handle, message.index)

    def note_stored(self, handle: WorkerHandle, message: EpisodeWritten) -> None:
        """Process an episode that is now in the dataset."""
        self.reconsider()
        self._report(message.attempt)
        self._settle(message.attempt, Settled.STORED, handle, Role.RENDERER)
        self._return_rest(handle, message.index)

    def note_refused(self, handle: WorkerHandle, message: EpisodeWritten) -> None:
        """Process an episode whose file is gone, or whose lease now belongs to another worker, which keeps it."""
        self.reconsider()
        self._return_rest(handle, message.index)

    def _return_rest(self, handle: WorkerHandle, index: int) -> None:
        """Requeue the unfinished variants of a lease that ended; their files were lost or refused.

        A lease that still runs is left alone, because its worker reads the plan's slot.
        """
        has_ended = handle.number in self._lost_workers or self.work.is_written(index)
        if has_ended and index not in self.commits.indices:
            self.work.lost(handle.number, index=index)

    @property
    def is_done(self) -> bool:
        """All requested episodes are settled and committed."""
        return self.work.finished and self.commits.is_empty

    # Losses

    def take_back(self, handle: WorkerHandle) -> tuple[Lease, ...]:
        """Take back leases and slots of a worker that ended; return the leases."""
        self.reconsider()
        with suppress(StorageError):  # the results stay queued, and the run loop commits them later
            self.commits.commit()
        # Leases whose complete file still waits for its commit are results, not losses.
        waiting = self.commits.indices
        held = self.work.held_by(handle.number)
        leases = tuple(lease for lease in held if lease.index not in waiting)
        if len(leases) < len(held):
            self._lost_workers.add(handle.number)
        for lease in leases:
            self.work.lost(handle.number, index=lease.index)
        self.plan_slots.reclaim(handle.number, leases)
        self.commits.forget_begun(handle)
        self._note(handle, self._merger.rest(str(handle.row)))
        return leases

    def replan(self, index: int) -> None:
        """Queue an episode to be planned again, because its plan cannot be read."""
        self.reconsider()
        self.plan_slots.free(self.work.replan(index))

    def quarantine(self, index: int, variants: tuple[int, ...], evidence: dict[str, Any]) -> None:
        """Quarantine an episode as poison; it is not tried again.

        Raises:
            StorageError: The ledger cannot be written; nothing has changed.
        """
        self.reconsider()
        # The ledger is written first: if the disk is full, the queue still holds the episode, and its next death leads
        # here again.
        self.dataset.quarantine(index, variants, evidence=evidence)
        self.evidence.remove(index)
        self.plan_slots.free(self.work.drop(index))
        self.progress.update(quarantined=self.progress.status.quarantined + len(variants))
        deaths = evidence.get("evidence") or "it killed workers"
        self.progress.tell(f"episode {index} given up: {deaths}", kind="quarantine")

    def _settle(self, attempt: Attempt, kind: Settled, handle: WorkerHandle, role: Role) -> bool:
        """Settle a variant; True when it was the last of its episode."""
        place = self.work.settled(attempt.idx, attempt.variant, kind)
        if not self.work.is_complete(attempt.idx):
            return False
        self.plan_slots.free(place)
        self._reported.pop(attempt.idx, None)
        self._ended_well(handle, attempt.idx, role)
        self.evidence.forget(attempt.idx)
        return True

    def _ended_well(self, handle: WorkerHandle, index: int, role: Role) -> None:
        self.results += 1
        handle.results += 1
        handle.backoff.result()
        self.pool.gpus.record_result(handle.gpu)
        self.evidence.record_lease(index, role)

    def _report(self, attempt: Attempt) -> None:
        reported = self._reported.setdefault(attempt.idx, set())
        stored = stored_of(attempt)
        self.progress.add(stored, is_new=attempt.attempt not in reported)
        self.progress.tell(line(stored, self.progress.status))
        reported.add(attempt.attempt)
