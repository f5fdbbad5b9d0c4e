"""Target size of the worker pool by role, and the steps that reach it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from nimbus.datagen.machine import usable_cores
from nimbus.runner.cell.dispatcher import Dispatcher
from nimbus.runner.cell.queue.instance_roles import InstanceCell, choose_split
from nimbus.runner.cell.queue.lease import Role
from nimbus.runner.cell.queue.scheduler import default_split, limit_split, resize
from nimbus.runner.cell.transport.channel import Channel
from nimbus.runner.cell.transport.spec import CellSpec
from nimbus.runner.cell.worker_pool import WorkerHandle, WorkerPool
from nimbus.runner.monitor.scale import FILE_NAME, read_scale

_CORES_PERIOD = 2.0
"""Interval between two checks of the number of cores [s]."""
_MOVES_PERIOD = 1.0
"""Interval between two decisions on the numbers of planners and instances [s]."""
_ROLES = (Role.PLANNER, Role.RENDERER)
_TYPICAL = (1.0, 4.0)
"""Assumed durations of planning and rendering of an episode before any are measured [s]."""

Split = tuple[int, int]


def first_split(spec: CellSpec, *, has_planner: bool) -> Split:
    """Return the initial number of planners and renderers; only renderers where planning is not a separate role."""
    if workers := spec.resources.workers:
        return workers if has_planner else (0, sum(workers))
    return _automatic_split(spec, usable_cores(), has_planner=has_planner)


def _automatic_split(spec: CellSpec, cores: int, *, has_planner: bool) -> Split:
    """Return a split that uses all cores: Isaac Sim instances for each GPU, or renderers on the CPU."""
    if spec.instances.executable:
        gpus = len(spec.instances.gpus)
        return (gpus if spec.physics == "isaacsim" else max(1, cores - gpus)), gpus
    return default_split(cores, *_TYPICAL) if has_planner else (0, cores)


class PoolSizer:
    """Keeps a worker pool at its target size, and changes the target with the cores or at a user's request.

    Args:
        spec: The run.
        pool: The workers.
        dispatcher: Source of the amount of remaining work.
        split: Initial planners and renderers.
    """

    def __init__(self, spec: CellSpec, pool: WorkerPool, dispatcher: Dispatcher, *, split: Split) -> None:
        self.split = split
        self.scaled = 0
        """Number of the last resize request that was applied."""
        self._spec, self._pool, self._dispatcher = spec, pool, dispatcher
        self._progress = dispatcher.progress
        self._row_free_at: dict[int, float] = {}
        self._follows_cores = spec.resources.workers is None
        self._cores = usable_cores()
        self._next_look = self._next_move = 0.0
        self._wishes = Path(spec.folder) / FILE_NAME
        self._seen = 0
        self._report()

    def rest(self, row: int, until: float) -> None:
        """Keep a row empty until a time.

        Args:
            row: Row of the heartbeat page.
            until: Monotonic time [s].
        """
        self._row_free_at[row] = until

    def look(self, now: float) -> None:
        """Apply a resize request or a change of the number of cores.

        Args:
            now: Monotonic time [s].
        """
        try:
            stamp = self._wishes.stat().st_mtime_ns
        except OSError:
            stamp = 0
        if stamp != self._seen:
            self._seen = stamp
            self._follow_wish()
        if now >= self._next_look:
            self._next_look = now + _CORES_PERIOD
            self._follow_cores()
        if now >= self._next_move and self._spec.resources.moves_instances and (self._follows_cores or not self.scaled):
            self._next_move = now + _MOVES_PERIOD
            self._move_instances()

    def spawn(self, fork_server: Channel, now: float) -> None:
        """Start workers until the target size is reached.

        Args:
            fork_server: Channel to the fork server.
            now: Monotonic time [s].
        """
        lacking = self._lacking()
        for role, row in zip(lacking, self._pool.free_rows()[: len(lacking)], strict=False):
            # One instance at a time, see WorkerPool.instance_starts.
            if (role == Role.RENDERER or self._spec.physics == "isaacsim") and self._pool.instance_starts:
                continue
            # Workers of every role need memory of a GPU, so none of the remaining ones could start either.
            if self._pool.gpus and not self._pool.has_free_gpu:
                return
            if now >= self._row_free_at.get(row, 0.0):
                self._pool.start(fork_server, role=role, row=row)

    def make_room_for_isolated(self) -> None:
        """Retire a worker, so that its row is free for the fresh worker that an isolated episode waits for.

        With fixed roles, a worker of the role that the episode needs is retired.
        """
        if not (needed := self._dispatcher.work.isolated_roles):
            return
        staying = [handle for handle in self._pool if not handle.stopped]
        if not self._dispatcher.leases.has_fixed_roles:
            _retire_one(staying)
            return
        for role in needed:
            _retire_one([handle for handle in staying if handle.role == role])

    def wanted(self) -> Split:
        """Target number of planners and renderers, limited by the remaining work."""
        counts = self._dispatcher.work.counts
        # No more workers than episodes: the surplus ones would only load and exit.
        left = counts.pending + counts.planning + counts.planned + counts.rendering + counts.isolated
        planners, renderers = self.split
        if self._pool.gpus:
            planners, renderers = limit_split(self.split, self._pool.gpus.worker_count)
        if self._dispatcher.leases.has_fixed_roles:
            return min(planners, left), min(renderers, left)
        total = min(planners + renderers, left)
        return min(planners, total), max(0, total - planners)

    def rescale(self, split: Split, *, why: str) -> None:
        """Set a new target split.

        Args:
            split: Planners and renderers.
            why: One-line reason, for the event log.
        """
        has_planner, has_instances = self._dispatcher.has_planner, bool(self._spec.instances.executable)
        split = split if has_planner else (0, sum(split))
        self._progress.tell(f"{why}: {_x(split)} workers instead of {_x(self.split)}", kind="workers")
        self.split = split
        # Idle workers first: they change their role, or exit, without waiting for their orders.
        staying = sorted(self._staying(), key=_is_busy)
        count = {role: [handle for handle in staying if handle.role == role] for role in _ROLES}
        current = (len(count[Role.PLANNER]), len(count[Role.RENDERER]))
        change = resize(current, split, can_switch=not has_instances)  # an instance is another executable
        here, there = _ROLES if change.to_renderer > 0 else _ROLES[::-1]
        for _ in range(abs(change.to_renderer)):
            handle = count[here].pop(0)
            self._progress.tell(f"worker {handle.number}: {here} becomes {there}", kind="role")
            self._dispatcher.switches += 1
            handle.role = there
        for role, further in zip(_ROLES, (change.planners, change.renderers), strict=True):
            for handle in count[role][: max(0, -further)]:
                handle.retiring = "too many workers"
        self._report()

    def _lacking(self) -> list[Role]:
        wanted, roles = self.wanted(), [handle.role for handle in self._staying()]
        if self._dispatcher.leases.has_fixed_roles:
            missing = [count - roles.count(role) for role, count in zip(_ROLES, wanted, strict=True)]
            return [role for role, count in zip(_ROLES, missing, strict=True) for _ in range(count)]
        planners = roles.count(Role.PLANNER)
        return [
            Role.PLANNER if planners + row < wanted[0] else Role.RENDERER for row in range(sum(wanted) - len(roles))
        ]

    def _move_instances(self) -> None:
        """Let planners make room for instances, or instances for planners, once the last change is complete."""
        is_changing = any(handle.retiring or handle.stopped or handle.ending for handle in self._pool)
        if is_changing or self._pool.instance_starts or self._lacking():
            return
        counts, cell = self._dispatcher.work.counts, self._dispatcher.leases.snapshot()
        state = InstanceCell(
            planners=cell.planners,
            renderers=cell.renderers,
            pending=counts.pending + counts.planning + counts.isolated,
            ready=counts.planned + counts.rendering,
            plan_seconds=cell.plan_seconds,
            render_seconds=cell.render_seconds,
            measured=min(map(self._dispatcher.throughput.count, _ROLES)),
            plan_yield=cell.plan_yield,
            start_seconds=self._dispatcher.start_costs.seconds,
            slots=cell.slots,
            most_renderers=len(self._spec.instances.fitting),
        )
        split = choose_split(state)
        if state.pending and not split[0] and self._dispatcher.has_planner:
            # Work was requeued, or came later: without a planner the run would never end.
            split = 1, max(1, split[1] - 1)
        if split != (cell.planners, cell.renderers):
            self.rescale(
                split, why=f"the run ends sooner, even with {state.start_seconds:.0f} s for the start of an instance"
            )

    def _staying(self) -> list[WorkerHandle]:
        return [handle for handle in self._pool if not handle.stopped and not handle.retiring]

    def _follow_wish(self) -> None:
        try:
            wish = read_scale(self._wishes.parent, launcher=os.getppid())
        except ValueError as error:
            self._progress.tell(f"{FILE_NAME}: ignored, because it is invalid: {error}", kind="workers")
            return
        if wish is None or wish.number == self.scaled:
            return
        self.scaled = wish.number
        self._follows_cores = wish.workers is None
        self._cores = usable_cores()
        self.rescale(wish.workers or self._automatic_split(), why="as asked")

    def _follow_cores(self) -> None:
        cores = usable_cores()
        if not self._follows_cores or cores == self._cores:
            return
        before, self._cores = self._cores, cores
        self.rescale(self._automatic_split(), why=f"{cores} cores, {before} before")

    def _automatic_split(self) -> Split:
        return _automatic_split(self._spec, self._cores, has_planner=self._dispatcher.has_planner)

    def _report(self) -> None:
        self._progress.update(split=self.split, scaled=self.scaled, cores=self._cores)


def _retire_one(handles: Sequence[WorkerHandle]) -> None:
    """Retire one of these workers, unless one is fresh or already retiring."""
    if not any(handle.is_fresh or handle.retiring for handle in handles):
        for handle in sorted(handles, key=_is_busy)[:1]:
            handle.retiring = "makes room for a fresh worker"


def _is_busy(handle: WorkerHandle) -> bool:
    return not handle.is_idle


def _x(split: Split) -> str:
    return "x".join(map(str, split))
