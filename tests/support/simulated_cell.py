"""A cell without processes: the production queue and scheduler with a virtual clock."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from nimbus.runner.cell.queue.lease import Lease, Missing, Role, Settled
from nimbus.runner.cell.queue.scheduler import Choice, FreeWorker, Snapshot, choose
from nimbus.runner.cell.queue.work_queue import WorkQueue

UNBOUNDED = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Cell:
    """Settings of the simulation; seconds are of the virtual clock."""

    planners: int
    renderers: int
    slots: int = 16
    switch_seconds: float = 0.0
    switch_once: bool = False
    """True if a worker keeps the components of both roles, so only its first switch has a cost."""
    fixed: bool = False
    episodes: int = 400
    plan_seconds: float = 1.0
    render_seconds: float = 2.5
    plan_yield: float = 0.8
    variation: float = 0.0
    """Standard deviation of stage times divided by their mean."""
    seed: int = 0

    def durations(self) -> tuple[np.ndarray, np.ndarray]:
        """Return durations of planning and of rendering by episode [s]; 0 if the plan fails. The yield is exact."""
        random = np.random.default_rng(self.seed)
        succeeds = random.permutation(np.arange(self.episodes) < round(self.plan_yield * self.episodes))
        times = np.ones((2, self.episodes))
        if self.variation:
            times = random.gamma(self.variation**-2, self.variation**2, (2, self.episodes))
        return times[0] * self.plan_seconds, times[1] * self.render_seconds * succeeds

    @property
    def ideal(self) -> float:
        """Duration of all work if it is spread evenly."""
        return float(sum(map(np.sum, self.durations()))) / (self.planners + self.renderers)

    @property
    def bound(self) -> float:
        """The ideal duration with the cost of switches: some workers change their role once, and slots are unlimited.

        If ``k`` workers move to the other role, the ``n`` workers that can do that role's work, including the movers,
        must do that work and the moves; all workers together must do everything.
        """
        plan, render = (float(times.sum()) for times in self.durations())
        count, cost = self.planners + self.renderers, self.switch_seconds
        ends = [max((plan + render) / count, plan / self.planners, render / self.renderers)]
        for own, work, other, other_work in (
            (self.planners, plan, self.renderers, render),
            (self.renderers, render, self.planners, plan),
        ):
            for moved in range(1, own + 1):
                paid = moved * cost
                ends.append(max((plan + render + paid) / count, (other_work + paid) / (other + moved), work / own))
        return min(ends)


@dataclass(frozen=True)
class Outcome:
    end: float
    switches: int
    stored: int


@dataclass(eq=False)
class _Worker:
    number: int
    role: Role
    paid: bool = False
    lease: Lease | None = None


class _Mean:
    """Mean as measured by a supervisor: none at first."""

    def __init__(self) -> None:
        self.total, self.count = 0.0, 0

    def add(self, value: float) -> None:
        self.total, self.count = self.total + value, self.count + 1

    @property
    def value(self) -> float:
        return self.total / self.count if self.count else 0.0


def simulate(cell: Cell) -> Outcome:
    """Run a cell to its end."""
    return _Simulation(cell).run()


class _Simulation:
    def __init__(self, cell: Cell) -> None:
        self.cell = cell
        self.plan_times, self.render_times = cell.durations()
        self.work = WorkQueue(
            (Missing(index=index, variants=(0,)) for index in range(cell.episodes)), total=cell.episodes
        )
        roles = [Role.PLANNER] * cell.planners + [Role.RENDERER] * cell.renderers
        self.workers = [_Worker(number, role) for number, role in enumerate(roles)]
        self.free = set(range(cell.slots)) if cell.slots < UNBOUNDED else set(range(cell.episodes))
        self.granted: dict[int, int] = {}
        self.events: list[tuple[float, int]] = []
        self.means = {Role.PLANNER: _Mean(), Role.RENDERER: _Mean()}
        self.yields = _Mean()
        self.yields.add(1.0)
        self.now, self.switches = 0.0, 0

    def run(self) -> Outcome:
        while not self.work.finished:
            while any([self.offer(worker) for worker in self.workers if worker.lease is None]):
                pass
            self.now, number = heapq.heappop(self.events)  # an IndexError here is a deadlock
            self.finish(self.workers[number])
        return Outcome(self.now, self.switches, self.work.counts.stored)

    def snapshot(self) -> Snapshot:
        counts = self.work.counts
        planners = sum(worker.role is Role.PLANNER for worker in self.workers)
        return Snapshot(
            pending=counts.pending,
            planning=counts.planning,
            ready=counts.planned,
            free_slots=len(self.free),
            slots=self.cell.slots,
            planners=planners,
            renderers=len(self.workers) - planners,
            plan_seconds=self.means[Role.PLANNER].value,
            render_seconds=self.means[Role.RENDERER].value,
            plan_yield=self.yields.value,
            fixed=self.cell.fixed,
        )

    def offer(self, worker: _Worker) -> bool:
        cost = 0.0 if worker.paid and self.cell.switch_once else self.cell.switch_seconds
        choice = choose(FreeWorker(worker.role, cost, self.cell.switch_once), self.snapshot())
        if choice is Choice.WAIT:
            return False
        role = Role.PLANNER if choice is Choice.PLAN else Role.RENDERER
        take = self.work.next_plan if role is Role.PLANNER else self.work.next_render
        worker.lease = lease = take(worker.number)
        assert lease
        start = self.now
        if role is not worker.role:
            start += cost
            worker.role, worker.paid = role, True
            self.switches += 1
        if role is Role.PLANNER:
            self.granted[lease.index] = self.free.pop()
        heapq.heappush(self.events, (start + self.duration(lease), worker.number))
        return True

    def duration(self, lease: Lease) -> float:
        times = self.plan_times if lease.role is Role.PLANNER else self.render_times
        return float(times[lease.index])

    def finish(self, worker: _Worker) -> None:
        lease, worker.lease = worker.lease, None
        assert lease
        self.means[lease.role].add(self.duration(lease))
        if lease.role is Role.RENDERER:
            place = self.work.settled(lease.index, 0, Settled.STORED)
            assert place == self.granted[lease.index]
            self.free.add(self.granted.pop(lease.index))
            return
        succeeds = self.render_times[lease.index] > 0
        self.yields.add(float(succeeds))
        if succeeds:
            assert self.work.planned(lease.index, self.granted[lease.index], lease=lease.number)
        else:
            self.work.settled(lease.index, 0, Settled.REJECTED)
            self.free.add(self.granted.pop(lease.index))
