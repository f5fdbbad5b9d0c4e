"""Who works: how many workers in which role there should be, and how to get there."""

from __future__ import annotations

import os
from pathlib import Path

from nimbus.datagen.machine import usable_cores
from nimbus.runner.cell.dispatcher import Dispatcher
from nimbus.runner.cell.queue.lease import Role
from nimbus.runner.cell.queue.scheduler import default_split, resize
from nimbus.runner.cell.transport.channel import Channel
from nimbus.runner.cell.transport.spec import CellSpec
from nimbus.runner.cell.worker_pool import WorkerHandle, WorkerPool
from nimbus.runner.monitor.scale import FILE_NAME, read_scale

_CORES_PERIOD = 2.0
"""[s] Between two looks at how many cores there are."""
_ROLES = (Role.PLANNER, Role.RENDERER)
_TYPICAL = (1.0, 4.0)
"""[s] Planning and rendering of an episode, before anything is measured."""

Split = tuple[int, int]


def first_split(spec: CellSpec, *, has_planner: bool) -> Split:
    """Planners and renderers to start with."""
    if spec.instances.executable and not spec.resources.workers:
        gpus = len(spec.instances.gpus)
        return max(1, usable_cores() - gpus), gpus
    return spec.resources.workers or _split(usable_cores(), has_planner=has_planner)


def _split(cores: int, *, has_planner: bool) -> Split:
    return default_split(cores, *_TYPICAL) if has_planner else (0, cores)


class PoolSizer:
    """Keeps a worker pool at its size, and changes that when cores come or go, or when somebody asks for it.

    Args:
        spec: The run.
        pool: The workers.
        dispatcher: Knows how much work is left.
        split: Planners and renderers to start with.
    """

    def __init__(self, spec: CellSpec, pool: WorkerPool, dispatcher: Dispatcher, *, split: Split) -> None:
        self.split = split
        self.scaled = 0
        """Number of the last wish that was followed."""
        self._spec, self._pool, self._dispatcher = spec, pool, dispatcher
        self._progress = dispatcher.progress
        self._seat_free_at: dict[int, float] = {}
        self._follows_cores = spec.resources.workers is None and not spec.instances.executable
        self._cores = usable_cores()
        self._next_look = 0.0
        self._wishes = Path(spec.folder) / FILE_NAME
        self._seen = 0
        self._tell()

    def rest(self, seat: int, until: float) -> None:
        """Leave a seat empty for a while.

        Args:
            seat: Which.
            until: [s] of the monotonic clock.
        """
        self._seat_free_at[seat] = until

    def look(self, now: float) -> None:
        """See whether another split is wanted, or the cores are others.

        Args:
            now: [s] of the monotonic clock.
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

    def spawn(self, fork_server: Channel, now: float) -> None:
        """Start workers until there are enough.

        Args:
            fork_server: Whom to ask.
            now: [s] of the monotonic clock.
        """
        lacking = self._lacking()
        for role, seat in zip(lacking, self._pool.free_seats()[: len(lacking)], strict=False):
            if role == Role.RENDERER and self._pool.instance_starts:
                continue
            if now >= self._seat_free_at.get(seat, 0.0):
                self._pool.start(fork_server, role=role, seat=seat)

    def make_room_for_solo(self) -> None:
        """What was set aside needs a worker that has done nothing: one of the others goes, and a new one comes."""
        if not self._dispatcher.work.aside_count:
            return
        staying = [handle for handle in self._pool if not handle.stopped]
        if any(handle.is_fresh or handle.retiring for handle in staying):
            return
        for handle in sorted(staying, key=_is_busy)[:1]:
            handle.retiring = "makes room for a fresh worker"

    def wanted(self) -> Split:
        """Planners and renderers that there should be, as far as there is work for them."""
        counts = self._dispatcher.work.counts
        left = counts.pending + counts.planning + counts.planned + counts.rendering + counts.aside
        planners, renderers = self.split
        if self._spec.resources.fixed_roles:
            return min(planners, left), min(renderers, left)
        total = min(planners + renderers, left)
        return min(planners, total), max(0, total - planners)

    def rescale(self, split: Split, *, why: str) -> None:
        """From now on, keep the worker pool at another split.

        Args:
            split: Planners and renderers.
            why: One line.
        """
        split = split if self._dispatcher.has_planner else (0, sum(split))
        self._progress.tell(f"{why}: {_x(split)} workers instead of {_x(self.split)}", kind="workers")
        self.split = split
        staying = sorted(self._staying(), key=_is_busy)
        count = {role: [handle for handle in staying if handle.role == role] for role in _ROLES}
        change = resize((len(count[Role.PLANNER]), len(count[Role.RENDERER])), split)
        here, there = _ROLES if change.to_renderer > 0 else _ROLES[::-1]
        for _ in range(abs(change.to_renderer)):
            handle = count[here].pop(0)
            self._progress.tell(f"worker {handle.number}: {here} becomes {there}", kind="role")
            self._dispatcher.switches += 1
            handle.role = there
        for role, further in zip(_ROLES, (change.planners, change.renderers), strict=True):
            for handle in count[role][: max(0, -further)]:
                handle.retiring = "too many workers"
        self._tell()

    def _lacking(self) -> list[Role]:
        staying = self._staying()
        if len(staying) >= sum(self.split):
            return []
        wanted = self.wanted()
        if self._spec.resources.fixed_roles:
            return [
                role
                for role, count in zip(_ROLES, wanted, strict=True)
                for _ in range(count - sum(handle.role == role for handle in staying))
            ]
        planners = sum(handle.role == Role.PLANNER for handle in staying)
        missing = sum(wanted) - len(staying)
        return [Role.PLANNER if planners + row < wanted[0] else Role.RENDERER for row in range(missing)]

    def _staying(self) -> list[WorkerHandle]:
        return [handle for handle in self._pool if not handle.stopped and not handle.retiring]

    def _follow_wish(self) -> None:
        try:
            wish = read_scale(self._wishes.parent, launcher=os.getppid())
        except ValueError as error:
            self._progress.tell(f"{FILE_NAME}: not understood: {error}", kind="workers")
            return
        if wish is None or wish.number == self.scaled:
            return
        self.scaled = wish.number
        self._follows_cores = wish.workers is None
        self._cores = usable_cores()
        self.rescale(wish.workers or _split(self._cores, has_planner=True), why="as asked")

    def _follow_cores(self) -> None:
        cores = usable_cores()
        if not self._follows_cores or cores == self._cores:
            return
        before, self._cores = self._cores, cores
        self.rescale(_split(cores, has_planner=self._dispatcher.has_planner), why=f"{cores} cores, {before} before")

    def _tell(self) -> None:
        self._progress.update(split=self.split, scaled=self.scaled, cores=self._cores)


def _is_busy(handle: WorkerHandle) -> bool:
    return not handle.is_idle


def _x(split: Split) -> str:
    return "x".join(map(str, split))
