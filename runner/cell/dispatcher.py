"""The dispatcher: gives orders to free workers, and follows what they made until it is settled."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from nimbus.datagen.errors import StorageError
from nimbus.datagen.store.dataset import Dataset
from nimbus.datagen.store.ledger.attempt import Attempt
from nimbus.datagen.store.ledger.records import Span
from nimbus.runner.cell.commit_queue import Intake
from nimbus.runner.cell.plan_slots import Places, spill_file
from nimbus.runner.cell.queue import backlog
from nimbus.runner.cell.queue.deadlines import Deadlines
from nimbus.runner.cell.queue.lease import Lease, Role, Settled
from nimbus.runner.cell.queue.poison import Evidence
from nimbus.runner.cell.queue.scheduler import Choice, Snapshot, Worker, choose
from nimbus.runner.cell.queue.throughput import Pace
from nimbus.runner.cell.queue.work_queue import Work
from nimbus.runner.cell.span_sampler import SpanThinner, Stay
from nimbus.runner.cell.transport.messages import Idle, Order, Plan, PlanMade, Recorded, Render, Stop, Times, Written
from nimbus.runner.cell.transport.shared_slots import SlotTable
from nimbus.runner.cell.transport.spec import CellSpec
from nimbus.runner.cell.worker_pool import Crew, Member
from nimbus.runner.monitor.progress import Progress, line, stored_of

_RISK = 0.2
"""Share of the groups of orders in which a worker may die, by how often leases end so: a part of each is made again."""


class Dispatcher:
    """Knows what every worker has to do, and puts what they made into the dataset.

    Args:
        spec: The run.
        dataset: Opened by this process, which alone writes it.
        crew: The workers.
        slots: Of the crew's slab.
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
        crew: Crew,
        *,
        slots: SlotTable,
        evidence: Evidence,
        deadlines: Deadlines,
        progress: Progress,
        has_planner: bool,
        missing: int,
        load_time: float,
        run: int,
    ) -> None:
        self.spec, self.dataset, self.crew = spec, dataset, crew
        self.evidence, self.deadlines, self.progress = evidence, deadlines, progress
        self.has_planner = has_planner
        self.work = Work(backlog.missing(dataset.ledger, spec), total=missing, has_planner=has_planner)
        self.pace = Pace()
        self._run, self._thinner = run, SpanThinner(started=time.time())
        self.places = Places(dataset.folder, slots)
        self.intake = Intake(dataset, self, load_time=load_time)
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

    def give(self, member: Member) -> bool:
        """Give an idle worker something to do; False when there is nothing for it now."""
        if member.idle_at == self._changes:
            return False
        lease = self._lease_for(member)
        if lease is None:
            member.idle_at = self._changes
            return False
        leases = [lease, *self._more_like(lease, member)]
        if not self.orders:
            self.progress.ready()
            self.progress.activity("making the first episodes")
        self.orders += len(leases)
        if lease.role is not member.role:
            self.reconsider()
            self.switches += 1
            self.progress.tell(f"worker {member.number}: {member.role} becomes {lease.role}", kind="role")
            member.role = lease.role
        member.solo = lease.index if member.is_fresh else None
        member.is_idle, member.orders = False, member.orders + len(leases)
        member.ordered, member.ordered_as = time.monotonic(), lease.role
        orders = tuple(self._order(each, member) for each in leases)
        plans = lease.role is Role.PLANNER or not self.has_planner
        self.crew.say(member, Plan(orders=orders) if plans else Render(orders=orders))
        return True

    def reconsider(self) -> None:
        """Ask again who had nothing to do: what there is to do has changed, or who is there to do it.

        Called with each change that matters at once; the shift's tick calls it for all others.
        """
        self._changes += 1

    def dismiss(self, member: Member) -> None:
        """Let an idle worker leave."""
        member.stopped, member.is_idle = True, False
        self.crew.say(member, Stop())

    def _lease_for(self, member: Member) -> Lease | None:
        if member.is_fresh and (solo := self.work.next_solo(member.number)):
            return solo
        if not self.has_planner:
            return self.work.next_render(member.number)
        plans = member.role == Role.PLANNER
        # As choose() says, but the whole cell need not be looked at for it.
        if own := self._next_plan(member) if plans else self.work.next_render(member.number):
            return own
        has_other = self.work.has_plan if plans else self._plan_places > 0 and self.work.has_pending
        if self.spec.resources.fixed_roles or not has_other:
            return None
        switch = 0.0 if len(member.roles) > 1 else self.pace.switch_seconds
        choice = choose(Worker(Role(member.role), switch, switch_once=True), self.snapshot())
        if choice is Choice.PLAN:
            return self._next_plan(member)
        return self.work.next_render(member.number) if choice is Choice.RENDER else None

    def _more_like(self, lease: Lease, member: Member) -> list[Lease]:
        """What a worker gets beside a lease, where they are so short that it would mostly wait for the next one.

        No more than its share of what waits, so that its colleagues find some, and the fewer, the more workers die. The
        first order of a role comes alone, as it builds what the others need.
        """
        most = min(self.pace.at_once(lease.role), int(_RISK / self.evidence.background(lease.role)))
        if most <= 1 or lease.solo or lease.role not in member.roles or self.evidence.deaths(lease.index):
            return []
        counts = self.work.counts
        colleagues = sum(each.role == lease.role and each is not member for each in self.crew)
        if lease.role is Role.PLANNER:
            waiting = min(counts.pending, self._plan_places - 1)  # the first one's place is not taken yet
        else:
            waiting = counts.planned if self.has_planner else counts.pending
        draw = self.work.next_plan if lease.role is Role.PLANNER else self.work.next_render
        more = (draw(member.number) for _ in range(min(most - 1, waiting // (1 + colleagues))))
        return [each for each in more if each]

    def _next_plan(self, member: Member) -> Lease | None:
        return self.work.next_plan(member.number) if self._plan_places > 0 else None

    @property
    def _plan_places(self) -> int:
        """Where further plans can go."""
        spill = self.spec.resources.spill - self.places.file_count if self.spec.resources.fixed_roles else 0
        return self.places.free_count + max(0, spill)

    def snapshot(self) -> Snapshot:
        """The cell as the schedule sees it."""
        counts = self.work.counts
        roles = [member.role for member in self.crew if not member.stopped]
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

    def _order(self, lease: Lease, member: Member) -> Order:
        self.dataset.lease(lease.index, lease.variants, lease=lease.number, owner=str(member.seat))
        slot, generation, spill = self._place(lease, member)
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

    def _place(self, lease: Lease, member: Member) -> tuple[int, int, str]:
        """Slot, its generation and file of a plan that is to be made or shown; the file is one slot's substitute."""
        if lease.place is None:
            slot, generation = self.places.grant(member.number, lease.index) if self.has_planner else (-1, 0)
            return slot, generation, spill_file(lease.index, lease.number)
        if isinstance(lease.place, str):
            return -1, 0, lease.place
        return lease.place, self.places.take(lease.place, member.number), ""

    # What comes back

    def take(self, member: Member, message: Any) -> None:
        """Take in a worker's message."""
        match message:
            case Idle():
                self._take_idle(member, message)
            case Recorded():
                self.intake.record(member, message)
            case Written():
                self._take_written(member, message)
            case PlanMade():
                self._take_plan(member, message)
            case Times():
                self._take_times(member, message)

    def _take_idle(self, member: Member, message: Idle) -> None:
        self._take_times(member, message)
        if member.ordered_as and (count := message.done - member.done) > 0:
            role = Role(member.ordered_as)
            self.pace.took(role, message.seconds, count=count, is_first=role not in member.roles)
            member.done = message.done
        if message.done < member.orders:
            return  # said before the last order came
        member.is_idle, member.flushing, member.roles = True, message.flushing, message.roles
        if not message.flushing:
            self._end_without_result(member)

    def _end_without_result(self, member: Member) -> None:
        """Where components gave nothing for an episode, that is as good as a death."""
        if not (held := self.work.held_by(member.number)):
            return
        waiting = self.intake.indices
        for lease in held:
            if lease.index not in waiting:
                member.trouble = f"episode {lease.index} came to no result"
                member.is_idle = False  # it is to get nothing else before it is gone
                self.crew.kill(member, why=member.trouble)
                return

    def _take_written(self, member: Member, message: Written) -> None:
        place = self.work.rendered(message.index, message.attempt.variant, lease=message.lease)
        if place is not None:
            if not self.places.free_count:
                self.reconsider()
            self.places.free(place)
        self.intake.store(member, message)

    def _take_plan(self, member: Member, message: PlanMade) -> None:
        self.reconsider()
        place = self.places.filled(member.number, message.index, message.lease, in_file=message.spilled)
        if self.work.planned(message.index, place, lease=message.lease):
            self._ended_well(member, message.index, Role.PLANNER)
            self.pace.planned(True)
        else:
            self.places.free(place)

    def _take_times(self, member: Member, message: Times) -> None:
        for phase, gap, total in message.gaps:
            self.deadlines.observe(phase, gap, total)
        if message.spans:
            self._note(member, self._thinner.take(str(member.seat), message.spans))

    def _note(self, member: Member, spans: Iterable[Stay]) -> None:
        seat, run = str(member.seat), self._run
        self.dataset.spans(Span(run=run, worker=seat, stage=stage, idx=-1, begin=a, end=b) for stage, a, b in spans)

    # What has become of it, as the intake tells

    def failed(self, member: Member, message: Recorded) -> None:
        """Failed attempts are in the ledger."""
        self.reconsider()
        held = self.work.held_by(member.number)
        role = next((lease.role for lease in held if lease.index == message.index), Role.RENDERER)
        for attempt in message.attempts:
            self._tell(attempt)
            if attempt.final and self._settle(attempt, Settled.REJECTED, member, role) and role is Role.PLANNER:
                self.places.withdraw(member.number, attempt.idx)
                self.pace.planned(False)
        self._take_rest(member, message.index)

    def stored(self, member: Member, message: Written) -> None:
        """An episode is in the dataset."""
        self.reconsider()
        self._tell(message.attempt)
        self._settle(message.attempt, Settled.STORED, member, Role.RENDERER)
        self._take_rest(member, message.index)

    def refused(self, member: Member, message: Written) -> None:
        """An episode's file is gone, or it was given to somebody else: unless that one has it, it is made again."""
        self.reconsider()
        self.work.lost(member.number, index=message.index)

    def _take_rest(self, member: Member, index: int) -> None:
        """What a worker that is gone did not come to, of an episode that waited for room, is for others to make."""
        if member.number in self._buried:
            self.work.lost(member.number, index=index)

    @property
    def is_done(self) -> bool:
        """Everything asked for is settled and committed."""
        return self.work.finished and self.intake.is_empty

    # What is lost

    def lost(self, member: Member) -> tuple[Lease, ...]:
        """Take back what a worker had that is gone."""
        self.reconsider()
        with suppress(StorageError):  # tried again later
            self.intake.commit()
        waiting = self.intake.indices
        held = self.work.held_by(member.number)
        leases = tuple(lease for lease in held if lease.index not in waiting)
        if len(leases) < len(held):
            self._buried.add(member.number)
        for lease in leases:
            self.work.lost(member.number, index=lease.index)
        self.places.reclaim(member.number, leases)
        self.intake.forget_begun(member)
        self._note(member, self._thinner.rest(str(member.seat)))
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

    def _settle(self, attempt: Attempt, kind: Settled, member: Member, role: Role) -> bool:
        """A variant is done with; whether that was the last one of its episode."""
        place = self.work.settled(attempt.idx, attempt.variant, kind)
        if not self.work.is_complete(attempt.idx):
            return False
        self.places.free(place)
        self._told.pop(attempt.idx, None)
        self._ended_well(member, attempt.idx, role)
        self.evidence.forget(attempt.idx)
        return True

    def _ended_well(self, member: Member, index: int, role: Role) -> None:
        self.results += 1
        member.results += 1
        member.backoff.result()
        self.evidence.record_lease(index, role)

    def _tell(self, attempt: Attempt) -> None:
        told = self._told.setdefault(attempt.idx, set())
        stored = stored_of(attempt)
        self.progress.add(stored, is_new=attempt.attempt not in told)
        self.progress.tell(line(stored, self.progress.status))
        told.add(attempt.attempt)
