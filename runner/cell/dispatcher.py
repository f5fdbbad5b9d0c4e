"""The dispatcher: gives orders to free workers, and follows what they made until it is settled."""

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
from nimbus.runner.cell.plan_slots import PlanSlots, spill_path
from nimbus.runner.cell.queue import backlog
from nimbus.runner.cell.queue.deadlines import Deadlines
from nimbus.runner.cell.queue.lease import Lease, Role, Settled
from nimbus.runner.cell.queue.poison import PoisonDetector
from nimbus.runner.cell.queue.scheduler import Choice, FreeWorker, Snapshot, choose
from nimbus.runner.cell.queue.throughput import Throughput
from nimbus.runner.cell.queue.work_queue import WorkQueue
from nimbus.runner.cell.transport.messages import (
    EpisodeWritten,
    Idle,
    Order,
    PlanMade,
    PlanOrder,
    Recorded,
    RenderOrder,
    Stop,
    Times,
)
from nimbus.runner.cell.transport.shared_slots import SlotTable
from nimbus.runner.cell.transport.spec import CellSpec
from nimbus.runner.cell.worker_pool import WorkerHandle, WorkerPool
from nimbus.runner.monitor.progress import Progress, line, stored_of
from nimbus.runner.monitor.span_sampler import SpanSampler, Stay

_RISK = 0.2
"""Share of the groups of orders in which a worker may die, by how often leases end so: a part of each is made again."""


class Dispatcher:
    """Knows what every worker has to do, and puts what they made into the dataset.

    Args:
        spec: The run.
        dataset: Opened by this process, which alone writes it.
        pool: The workers.
        slots: Of the worker pool's slab.
        evidence: Told of leases that ended well.
        deadlines: Told how long phases took.
        progress: Told what was made.
        has_planner: Planning is a role of its own.
        missing: Indices of which something is to be made.
        load_time: [s] CPU that loading took, for all workers; the first attempt tells of it.
        run: Number of the run in the ledger.
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
    ) -> None:
        self.spec, self.dataset, self.pool = spec, dataset, pool
        self.evidence, self.deadlines, self.progress = evidence, deadlines, progress
        self.has_planner = has_planner
        self.work = WorkQueue(backlog.missing(dataset.ledger, spec), total=missing, has_planner=has_planner)
        self.pace = Throughput()
        self._run, self._thinner = run, SpanSampler(started=time.time())
        self.places = PlanSlots(dataset.folder, slots)
        self.commits = CommitQueue(dataset, self, load_time=load_time)
        self.switches = 0
        self.orders = 0
        """Given so far."""
        self.results = 0
        """Plans, rejections and commits so far: the run gets somewhere."""
        self._changes = 0
        """Times that there may have been something new for those who had nothing to do."""
        self._told: dict[int, set[int]] = {}
        self._buried: set[int] = set()
        """Workers that went while something of theirs waited for room on the disk."""

    # Orders

    def give(self, handle: WorkerHandle) -> bool:
        """Give an idle worker something to do; False when there is nothing for it now."""
        if handle.idle_at == self._changes:
            return False
        lease = self._lease_for(handle)
        if lease is None:
            handle.idle_at = self._changes
            return False
        leases = [lease, *self._more_like(lease, handle)]
        if not self.orders:
            self.progress.ready()
            self.progress.activity("making the first episodes")
        self.orders += len(leases)
        if lease.role is not handle.role:
            self.reconsider()
            self.switches += 1
            self.progress.tell(f"worker {handle.number}: {handle.role} becomes {lease.role}", kind="role")
            handle.role = lease.role
        handle.solo = lease.index if handle.is_fresh else None
        handle.is_idle, handle.orders = False, handle.orders + len(leases)
        handle.ordered, handle.ordered_as = time.monotonic(), lease.role
        orders = tuple(self._order(each, handle) for each in leases)
        plans = lease.role is Role.PLANNER or not self.has_planner
        self.pool.say(handle, PlanOrder(orders=orders) if plans else RenderOrder(orders=orders))
        return True

    def reconsider(self) -> None:
        """Ask again who had nothing to do: what there is to do has changed, or who is there to do it.

        Called with each change that matters at once; the run loop's tick calls it for all others.
        """
        self._changes += 1

    def stop_worker(self, handle: WorkerHandle) -> None:
        """Let an idle worker leave."""
        handle.stopped, handle.is_idle = True, False
        self.pool.say(handle, Stop())

    def _lease_for(self, handle: WorkerHandle) -> Lease | None:
        if handle.is_fresh and (solo := self.work.next_isolated(handle.number)):
            return solo
        if not self.has_planner:
            return self.work.next_render(handle.number)
        plans = handle.role == Role.PLANNER
        # As choose() says, but the whole cell need not be looked at for it.
        if own := self._next_plan(handle) if plans else self.work.next_render(handle.number):
            return own
        has_other = self.work.has_plan if plans else self._plan_places > 0 and self.work.has_pending
        if self.spec.resources.fixed_roles or not has_other:
            return None
        switch = 0.0 if len(handle.roles) > 1 else self.pace.switch_seconds
        choice = choose(FreeWorker(Role(handle.role), switch, switch_once=True), self.snapshot())
        if choice is Choice.PLAN:
            return self._next_plan(handle)
        return self.work.next_render(handle.number) if choice is Choice.RENDER else None

    def _more_like(self, lease: Lease, handle: WorkerHandle) -> list[Lease]:
        """What a worker gets beside a lease, where they are so short that it would mostly wait for the next one.

        No more than its share of what waits, so that its colleagues find some, and the fewer, the more workers die. The
        first order of a role comes alone, as it builds what the others need.
        """
        most = min(self.pace.batch_size(lease.role), int(_RISK / self.evidence.background(lease.role)))
        if most <= 1 or lease.solo or lease.role not in handle.roles or self.evidence.deaths(lease.index):
            return []
        counts = self.work.counts
        colleagues = sum(each.role == lease.role and each is not handle for each in self.pool)
        if lease.role is Role.PLANNER:
            waiting = min(counts.pending, self._plan_places - 1)  # the first one's place is not taken yet
        else:
            waiting = counts.planned if self.has_planner else counts.pending
        draw = self.work.next_plan if lease.role is Role.PLANNER else self.work.next_render
        more = (draw(handle.number) for _ in range(min(most - 1, waiting // (1 + colleagues))))
        return [each for each in more if each]

    def _next_plan(self, handle: WorkerHandle) -> Lease | None:
        return self.work.next_plan(handle.number) if self._plan_places > 0 else None

    @property
    def _plan_places(self) -> int:
        """Where further plans can go."""
        spill = self.spec.resources.spill - self.places.file_count if self.spec.resources.fixed_roles else 0
        return self.places.free_count + max(0, spill)

    def snapshot(self) -> Snapshot:
        """The cell as the schedule sees it."""
        counts = self.work.counts
        roles = [handle.role for handle in self.pool if not handle.stopped]
        return Snapshot(
            pending=counts.pending,
            planning=counts.planning,
            ready=counts.planned,
            free_slots=self._plan_places,
            slots=self.places.slot_count,
            planners=roles.count(Role.PLANNER),
            renderers=roles.count(Role.RENDERER),
            plan_seconds=self.pace.seconds(Role.PLANNER),
            render_seconds=self.pace.seconds(Role.RENDERER),
            plan_yield=self.pace.plan_yield,
            fixed=self.spec.resources.fixed_roles,
        )

    def _order(self, lease: Lease, handle: WorkerHandle) -> Order:
        self.dataset.lease(lease.index, lease.variants, lease=lease.number, owner=str(handle.seat))
        slot, generation, spill = self._place(lease, handle)
        return Order(
            index=lease.index,
            variants=lease.variants,
            lease=lease.number,
            slot=slot,
            generation=generation,
            spill=spill,
            stored=lease.stored_plan,
            stored_attempt=lease.stored_attempt,
        )

    def _place(self, lease: Lease, handle: WorkerHandle) -> tuple[int, int, str]:
        """Slot, its generation and file of a plan that is to be made or shown; the file is one slot's substitute."""
        if lease.place is None:
            slot, generation = self.places.grant(handle.number, lease.index) if self.has_planner else (-1, 0)
            return slot, generation, spill_path(lease.index, lease.number)
        if isinstance(lease.place, str):
            return -1, 0, lease.place
        return lease.place, self.places.take(lease.place, handle.number), ""

    # What comes back

    def take(self, handle: WorkerHandle, message: Any) -> None:
        """Take in a worker's message."""
        match message:
            case Idle():
                self._take_idle(handle, message)
            case Recorded():
                self.commits.record(handle, message)
            case EpisodeWritten():
                self._take_written(handle, message)
            case PlanMade():
                self._take_plan(handle, message)
            case Times():
                self._take_times(handle, message)

    def _take_idle(self, handle: WorkerHandle, message: Idle) -> None:
        self._take_times(handle, message)
        if handle.ordered_as and (count := message.done - handle.done) > 0:
            role = Role(handle.ordered_as)
            self.pace.took(role, message.seconds, count=count, is_first=role not in handle.roles)
            handle.done = message.done
        if message.done < handle.orders:
            return  # said before the last order came
        handle.is_idle, handle.flushing, handle.roles = True, message.flushing, message.roles
        if not message.flushing:
            self._end_without_result(handle)

    def _end_without_result(self, handle: WorkerHandle) -> None:
        """Where components gave nothing for an episode, that is as good as a death."""
        if not (held := self.work.held_by(handle.number)):
            return
        waiting = self.commits.indices
        for lease in held:
            if lease.index not in waiting:
                handle.trouble = f"episode {lease.index} came to no result"
                handle.is_idle = False  # it is to get nothing else before it is gone
                self.pool.kill(handle, why=handle.trouble)
                return

    def _take_written(self, handle: WorkerHandle, message: EpisodeWritten) -> None:
        place = self.work.rendered(message.index, message.attempt.variant, lease=message.lease)
        if place is not None:
            if not self.places.free_count:
                self.reconsider()
            self.places.free(place)
        self.commits.store(handle, message)

    def _take_plan(self, handle: WorkerHandle, message: PlanMade) -> None:
        self.reconsider()
        place = self.places.filled(handle.number, message.index, message.lease, in_file=message.spilled)
        if self.work.planned(message.index, place, lease=message.lease):
            self._ended_well(handle, message.index, Role.PLANNER)
            self.pace.planned(True)
        else:
            self.places.free(place)

    def _take_times(self, handle: WorkerHandle, message: Times) -> None:
        for phase, gap, total in message.gaps:
            self.deadlines.observe(phase, gap, total)
        if message.spans:
            self._note(handle, self._thinner.take(str(handle.seat), message.spans))

    def _note(self, handle: WorkerHandle, spans: Iterable[Stay]) -> None:
        seat, run = str(handle.seat), self._run
        self.dataset.spans(TimeSpan(run=run, worker=seat, stage=stage, idx=-1, begin=a, end=b) for stage, a, b in spans)

    # What has become of it, as the commit queue tells

    def failed(self, handle: WorkerHandle, message: Recorded) -> None:
        """Failed attempts are in the ledger."""
        self.reconsider()
        held = self.work.held_by(handle.number)
        role = next((lease.role for lease in held if lease.index == message.index), Role.RENDERER)
        for attempt in message.attempts:
            self._tell(attempt)
            if attempt.final and self._settle(attempt, Settled.REJECTED, handle, role) and role is Role.PLANNER:
                self.places.withdraw(handle.number, attempt.idx)
                self.pace.planned(False)
        self._take_rest(handle, message.index)

    def stored(self, handle: WorkerHandle, message: EpisodeWritten) -> None:
        """An episode is in the dataset."""
        self.reconsider()
        self._tell(message.attempt)
        self._settle(message.attempt, Settled.STORED, handle, Role.RENDERER)
        self._take_rest(handle, message.index)

    def refused(self, handle: WorkerHandle, message: EpisodeWritten) -> None:
        """An episode's file is gone, or it was given to somebody else: unless that one has it, it is made again."""
        self.reconsider()
        self.work.lost(handle.number, index=message.index)

    def _take_rest(self, handle: WorkerHandle, index: int) -> None:
        """What a worker that is gone did not come to, of an episode that waited for room, is for others to make."""
        if handle.number in self._buried:
            self.work.lost(handle.number, index=index)

    @property
    def is_done(self) -> bool:
        """Everything asked for is settled and committed."""
        return self.work.finished and self.commits.is_empty

    # What is lost

    def lost(self, handle: WorkerHandle) -> tuple[Lease, ...]:
        """Take back what a worker had that is gone."""
        self.reconsider()
        with suppress(StorageError):  # tried again later
            self.commits.commit()
        waiting = self.commits.indices
        held = self.work.held_by(handle.number)
        leases = tuple(lease for lease in held if lease.index not in waiting)
        if len(leases) < len(held):
            self._buried.add(handle.number)
        for lease in leases:
            self.work.lost(handle.number, index=lease.index)
        self.places.reclaim(handle.number, leases)
        self.commits.forget_begun(handle)
        self._note(handle, self._thinner.rest(str(handle.seat)))
        return leases

    def replan(self, index: int) -> None:
        """Make a plan anew that cannot be read."""
        self.reconsider()
        self.places.free(self.work.replan(index))

    def quarantine(self, index: int, variants: tuple[int, ...], evidence: dict[str, Any]) -> None:
        """Give an episode up."""
        self.reconsider()
        self.dataset.quarantine(index, variants, evidence=evidence)
        self.places.free(self.work.drop(index))
        self.progress.update(quarantined=self.progress.status.quarantined + len(variants))
        deaths = evidence.get("evidence") or "it killed workers"
        self.progress.tell(f"episode {index} given up: {deaths}", kind="quarantine")

    # Helpers of the above

    def _settle(self, attempt: Attempt, kind: Settled, handle: WorkerHandle, role: Role) -> bool:
        """A variant is done with; whether that was the last one of its episode."""
        place = self.work.settled(attempt.idx, attempt.variant, kind)
        if not self.work.is_complete(attempt.idx):
            return False
        self.places.free(place)
        self._told.pop(attempt.idx, None)
        self._ended_well(handle, attempt.idx, role)
        self.evidence.forget(attempt.idx)
        return True

    def _ended_well(self, handle: WorkerHandle, index: int, role: Role) -> None:
        self.results += 1
        handle.results += 1
        handle.backoff.result()
        self.evidence.record_lease(index, role)

    def _tell(self, attempt: Attempt) -> None:
        told = self._told.setdefault(attempt.idx, set())
        stored = stored_of(attempt)
        self.progress.add(stored, is_new=attempt.attempt not in told)
        self.progress.tell(line(stored, self.progress.status))
        told.add(attempt.attempt)
