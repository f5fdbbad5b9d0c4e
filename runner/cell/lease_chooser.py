"""Leases of a cell's work for idle workers, and the orders that carry them."""

from __future__ import annotations

from nimbus.datagen.store.dataset import Dataset
from nimbus.runner.cell.plan_slots import PlanSlots, spill_path
from nimbus.runner.cell.queue.lease import Lease, Role
from nimbus.runner.cell.queue.poison import PoisonDetector
from nimbus.runner.cell.queue.scheduler import Choice, FreeWorker, Snapshot, choose
from nimbus.runner.cell.queue.throughput import Throughput
from nimbus.runner.cell.queue.work_queue import WorkQueue
from nimbus.runner.cell.transport.messages import Order
from nimbus.runner.cell.transport.spec import CellSpec
from nimbus.runner.cell.worker_pool import WorkerHandle, WorkerPool

_RISK = 0.2
"""Largest accepted probability that a worker ends within a batch of orders; its other orders are then lost."""


class LeaseChooser:
    """Choice of leases for a worker by its role, the work, and the free slots.

    Args:
        spec: The run.
        dataset: Records each lease before its order is sent.
        pool: The workers.
        work: The episodes that are left.
        plan_slots: Storage of plans.
        throughput: Durations of plans and renders.
        evidence: Rates at which workers end.
        has_planner: True when planning is a separate role.
        lanes: Number of episodes that a planner advances together.
    """

    def __init__(
        self,
        spec: CellSpec,
        dataset: Dataset,
        pool: WorkerPool,
        *,
        work: WorkQueue,
        plan_slots: PlanSlots,
        throughput: Throughput,
        evidence: PoisonDetector,
        has_planner: bool,
        lanes: int,
    ) -> None:
        self.spec, self.dataset, self.pool = spec, dataset, pool
        self.work, self.plan_slots, self.throughput, self.evidence = work, plan_slots, throughput, evidence
        self.has_planner, self.lanes = has_planner, lanes

    def lease_for(self, handle: WorkerHandle) -> Lease | None:
        """Choose work for an idle worker; return None when nothing fits it now."""
        only = Role(handle.role) if self.has_fixed_roles else None
        # Isolated episodes first: a worker is fresh only once, and any other order would use that up.
        if handle.is_fresh and (isolated := self.work.next_isolated(handle.number, role=only)):
            return isolated
        if not self.has_planner:
            return self.work.next_render(handle.number)
        plans = handle.role == Role.PLANNER
        # A shortcut: choose() would return the same, but needs a snapshot of the whole cell.
        if own := self._next_plan(handle) if plans else self.work.next_render(handle.number):
            return own
        has_other = self.work.has_plan if plans else self._free_plan_slots > 0 and self.work.has_pending
        if self.has_fixed_roles or not has_other:
            return None
        # A worker that has built both halves of the chain changes its role at no cost.
        switch = 0.0 if len(handle.roles) > 1 else self.throughput.switch_seconds
        choice = choose(FreeWorker(Role(handle.role), switch, switch_once=True), self.snapshot())
        if choice is Choice.PLAN:
            return self._next_plan(handle)
        return self.work.next_render(handle.number) if choice is Choice.RENDER else None

    def more_like(self, lease: Lease, handle: WorkerHandle) -> list[Lease]:
        """Return further leases for the worker if orders are so short that it would spend most of its time waiting.

        The batch is at most the worker's share of the waiting work, and smaller where workers end often. The first
        order of a role comes alone, because it builds the components that later orders reuse.
        """
        if self.fits_lockstep(lease, handle):
            # One order for each lane; fewer where workers end often. draw_fresh leaves the other planners their share.
            rate = self.evidence.observed(lease.role)
            return self.draw_fresh(handle, min(self.lanes, int(_RISK / rate) if rate else self.lanes) - 1)
        most = min(self.throughput.batch_size(lease.role), int(_RISK / self.evidence.background(lease.role)))
        if most <= 1 or lease.is_isolated or lease.role not in handle.roles or self.evidence.deaths(lease.index):
            return []
        counts = self.work.counts
        colleagues = sum(each.role == lease.role and each is not handle for each in self.pool)
        if lease.role is Role.PLANNER:
            waiting = min(counts.pending, self._free_plan_slots - 1)  # the first lease's slot is not reserved yet
        else:
            waiting = counts.planned if self.has_planner else counts.pending
        draw = self.work.next_plan if lease.role is Role.PLANNER else self.work.next_render
        more = (draw(handle.number) for _ in range(min(most - 1, waiting // (1 + colleagues))))
        return [each for each in more if each]

    def fits_lockstep(self, lease: Lease, handle: WorkerHandle) -> bool:
        """Return True when a lease can be planned beside others; the first one builds the components alone."""
        is_sound = not lease.is_isolated and not self.work.losses(lease.index)
        return self.lanes > 1 and lease.role is Role.PLANNER and lease.role in handle.roles and is_sound

    def draw_fresh(self, handle: WorkerHandle, most: int) -> list[Lease]:
        """Lease up to ``most`` indices that were never lost to a planner, at most its share of the waiting ones."""
        colleagues = sum(each.role == Role.PLANNER and each is not handle for each in self.pool)
        waiting = self.work.counts.pending
        leases: list[Lease] = []
        # A slot is reserved when the order is built, and the first lease of a request has none yet.
        free = self._free_plan_slots - sum(each.place is None for each in self._unordered(handle))
        for _ in range(min(most, max(1, waiting // (1 + colleagues)), free)):
            if (lease := self.work.next_plan(handle.number, is_fresh=True)) is None:
                break
            leases.append(lease)
        return leases

    @property
    def has_fixed_roles(self) -> bool:
        """True when workers keep the role that they start with; False where there is only one role."""
        return self.has_planner and self.spec.resources.fixed_roles

    def snapshot(self) -> Snapshot:
        """Counts and durations on which the scheduler bases its decisions."""
        counts = self.work.counts
        roles = [handle.role for handle in self.pool if not handle.stopped]
        return Snapshot(
            pending=counts.pending,
            planning=counts.planning,
            ready=counts.planned,
            free_slots=self._free_plan_slots,
            slots=self.plan_slots.slot_count,
            planners=roles.count(Role.PLANNER),
            renderers=roles.count(Role.RENDERER),
            plan_seconds=self.throughput.seconds(Role.PLANNER),
            render_seconds=self.throughput.seconds(Role.RENDERER),
            plan_yield=self.throughput.plan_yield,
            fixed=self.has_fixed_roles,
        )

    def order(self, lease: Lease, handle: WorkerHandle) -> Order:
        """Record a lease and make its order."""
        # The lease is in the ledger before the order is sent, so that a result of an older lease can be refused at any
        # time.
        self.dataset.lease(lease.index, lease.variants, lease=lease.number, owner=str(handle.row))
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

    def _unordered(self, handle: WorkerHandle) -> list[Lease]:
        """Return the leases of a planner whose orders are not built yet."""
        return [
            each
            for each in self.work.held_by(handle.number)
            if not self.plan_slots.is_reserved(handle.number, each.index)
        ]

    def _next_plan(self, handle: WorkerHandle) -> Lease | None:
        return self.work.next_plan(handle.number) if self._free_plan_slots > 0 else None

    @property
    def _free_plan_slots(self) -> int:
        """Number of further plans that slots and spill files can hold."""
        spill = self.spec.resources.spill - self.plan_slots.file_count if self.spec.resources.fixed_roles else 0
        return self.plan_slots.free_count + max(0, spill)

    def _place(self, lease: Lease, handle: WorkerHandle) -> tuple[int, int, str]:
        """Return slot, generation and spill file of an order's plan; without a slot the plan goes into the file."""
        if lease.place is None:
            slot, generation = self.plan_slots.reserve(handle.number, lease.index) if self.has_planner else (-1, 0)
            return slot, generation, spill_path(lease.index, lease.number)
        if isinstance(lease.place, str):
            return -1, 0, lease.place
        return lease.place, self.plan_slots.take(lease.place, handle.number), ""
