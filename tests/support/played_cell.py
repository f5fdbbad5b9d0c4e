"""A cell without processes: a dispatcher whose workers are simulated by the test."""

from __future__ import annotations

import selectors
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from nimbus.datagen.store.dataset import Dataset
from nimbus.datagen.store.ledger.attempt import Attempt
from nimbus.runner.cell.dispatcher import Dispatcher
from nimbus.runner.cell.queue.deadlines import Deadlines
from nimbus.runner.cell.queue.lease import Role, Settled
from nimbus.runner.cell.queue.poison import PoisonDetector
from nimbus.runner.cell.transport.channel import pair
from nimbus.runner.cell.transport.messages import EpisodeWritten, Idle, PlanMade
from nimbus.runner.cell.transport.shared_slots import SharedSlots, SlotTable
from nimbus.runner.cell.transport.spec import CellSpec, Instances, Resources
from nimbus.runner.cell.worker_pool import WorkerHandle, WorkerPool
from nimbus.runner.monitor.progress import Progress
from tests.support.synthetic import open_dataset


@dataclass
class Cell:
    """A dispatcher whose workers are simulated by the test."""

    dataset: Dataset
    pool: WorkerPool
    dispatcher: Dispatcher

    def employ(self, role: str = "renderer") -> WorkerHandle:
        """Add a new worker with an order."""
        fork_server, _theirs = pair()
        handle = self.pool.start(fork_server, role=role, row=self.pool.free_rows()[0])
        self.start(handle)
        return handle

    def start(self, handle: WorkerHandle) -> int:
        """Let a new worker request its first orders; return their number."""
        self.dispatcher.take(handle, Idle(done=0))
        return self.orders_for(handle)

    def finish(self, handle: WorkerHandle, *, seconds: float = 1e-3) -> None:
        """Let a worker complete all of its orders: plans are made, and rendered episodes are rejected."""
        for lease in self.dispatcher.work.held_by(handle.number):
            if lease.role is Role.PLANNER:
                self.dispatcher.take(handle, PlanMade(index=lease.index, lease=lease.number))
            else:
                self.dispatcher.plan_slots.free(self.dispatcher.work.settled(lease.index, 0, Settled.REJECTED))
        roles = dict.fromkeys([*handle.roles, handle.ordered_as])
        self.dispatcher.take(handle, Idle(done=handle.orders, seconds=seconds, roles=tuple(roles)))

    def orders_for(self, handle: WorkerHandle) -> int:
        """Count the orders that a free worker gets now."""
        before = handle.orders
        self.dispatcher.give(handle)
        return handle.orders - before

    def trust(self, *, deaths: int = 0) -> None:
        """Let a hundred workers complete an order, and some die at theirs."""
        for role in Role:
            for number in range(100 - deaths):
                self.dispatcher.evidence.record_lease(10**6 + number, role)
            for number in range(deaths):
                self.dispatcher.evidence.record_death(10**7 + number, 1, "plan", role=role, is_isolated=False)

    def write(self, handle: WorkerHandle, variant: int) -> None:
        """Let a worker report a complete file."""
        lease = self.dispatcher.work.held_by(handle.number)[0]
        path = self.dataset.stage / f"{variant}.{handle.number}.tmp"
        path.write_text("whole")
        attempt = Attempt(
            episode_id=f"{variant}",
            task="",
            seed=0,
            idx=lease.index,
            variant=variant,
            attempt=0,
            final=True,
            success=True,
            path=f"episodes/{variant}.hdf5",
            byte_count=5,
        )
        name = path.relative_to(self.dataset.folder).as_posix()
        self.dispatcher.take(handle, EpisodeWritten(index=lease.index, lease=lease.number, attempt=attempt, path=name))

    def lose(self, handle: WorkerHandle) -> None:
        """Let a worker end."""
        self.pool.forget(handle)
        self.dispatcher.take_back(handle)


@contextmanager
def open_cell(
    folder: Path,
    *,
    episodes: int,
    variants: int = 3,
    slots: int = 0,
    resources: Resources | None = None,
    instances: Instances | None = None,
    lanes: int = 1,
) -> Iterator[Cell]:
    """Return a cell without workers; with slots, it is one with planners."""
    with open_dataset(folder / "data") as dataset, selectors.DefaultSelector() as selector:
        spec = CellSpec(folder=str(dataset.folder), episodes=episodes, variants=variants)
        spec = replace(spec, resources=resources or spec.resources, instances=instances or spec.instances)
        shared_slots = SharedSlots.create(slot_count=1, slot_bytes=4096)
        pool = WorkerPool(
            spec, selector, shared_slots=shared_slots, rows=8, on_message=lambda *_: None, on_exit=lambda *_: None
        )
        dispatcher = Dispatcher(
            spec,
            dataset,
            pool,
            slots=SlotTable(max(1, slots)),
            evidence=PoisonDetector(),
            deadlines=Deadlines(),
            progress=Progress(dataset.folder, task="", target=variants * episodes),
            has_planner=slots > 0,
            missing=episodes,
            load_time=0.0,
            run=1,
            lanes=lanes,
        )
        yield Cell(dataset, pool, dispatcher)
