"""A cell with a virtual clock whose renderers are instances that take minutes to start."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from nimbus.runner.cell.queue.instance_roles import InstanceCell, Split, choose_split
from nimbus.runner.cell.transport.spec import Resources

_PERIOD = 1.0
"""Interval between two decisions [s]."""


@dataclass(frozen=True, kw_only=True)
class InstanceRun:
    """Simulated run; seconds are of the virtual clock."""

    cores: int
    gpus: int
    episodes: int
    plan_seconds: float
    render_seconds: float
    start_seconds: float
    plan_yield: float = 0.85
    fits: int = 3
    """Number of instances that fit on each GPU."""
    seed: int = 0

    @property
    def slots(self) -> int:
        """Number of plans that can be in production, waiting or being rendered at once."""
        return Resources().slot_count(self.cores)

    @property
    def most_renderers(self) -> int:
        """Number of instances that fit."""
        return min(self.gpus * self.fits, self.cores - 1)

    @property
    def default(self) -> Split:
        """Initial split of a run: an instance for each GPU."""
        return self.cores - self.gpus, self.gpus


class _Simulation:
    def __init__(self, run: InstanceRun, split: Split, *, moves: bool) -> None:
        self.run, self.moves, self.target = run, moves, split
        random = np.random.default_rng(run.seed)
        self.plans = random.gamma(4, run.plan_seconds / 4, run.episodes)
        self.renders = random.gamma(4, run.render_seconds / 4, run.episodes)
        self.succeeds = random.random(run.episodes) < run.plan_yield
        self.planners, self.renderers, self.starting = split[0], 0, False
        self.free = [split[0], 0]
        self.pending, self.ready, self.planning, self.rendering = run.episodes, 0, 0, 0
        self.counts, self.sums = [0, 0], [0.0, 0.0]
        """Number and total duration of plans and of renders."""
        self.decided = -_PERIOD
        self.events: list[tuple[float, int, str, float]] = []
        self.now, self.number = 0.0, 0

    def end(self) -> float:
        """Run to the end; return the duration."""
        drawn, shown, left = iter(zip(self.plans, self.succeeds, strict=True)), iter(self.renders), self.run.episodes
        while left:
            self._resize()
            while self.free[0] and self.pending and self.planning + self.ready + self.rendering < self.run.slots:
                seconds, succeeds = next(drawn)
                self.free[0], self.pending, self.planning = self.free[0] - 1, self.pending - 1, self.planning + 1
                self._after(seconds, "plan" if succeeds else "failure")
            while self.free[1] and self.ready:
                self.free[1], self.ready, self.rendering = self.free[1] - 1, self.ready - 1, self.rendering + 1
                self._after(next(shown), "render")
            self.now, _, kind, seconds = heapq.heappop(self.events)  # an IndexError here is a deadlock
            if kind == "start":
                self.starting, self.renderers, self.free[1] = False, self.renderers + 1, self.free[1] + 1
            elif kind == "render":
                self.rendering, self.free[1], left = self.rendering - 1, self.free[1] + 1, left - 1
                self._measure(1, seconds)
            else:
                self.planning, self.free[0] = self.planning - 1, self.free[0] + 1
                self.ready, left = (self.ready + 1, left) if kind == "plan" else (self.ready, left - 1)
                self._measure(0, seconds)
            self._decide()
        return self.now

    def _after(self, seconds: float, kind: str) -> None:
        self.number += 1
        heapq.heappush(self.events, (self.now + seconds, self.number, kind, seconds))

    def _measure(self, stage: int, seconds: float) -> None:
        self.counts[stage] += 1
        self.sums[stage] += seconds

    def _resize(self) -> None:
        """End surplus idle workers, and start missing ones, one instance at a time."""
        gone = min(self.free[0], max(0, self.planners - self.target[0]))
        self.free[0], self.planners = self.free[0] - gone, self.planners - gone
        gone = min(self.free[1], max(0, self.renderers - self.target[1]))
        self.free[1], self.renderers = self.free[1] - gone, self.renderers - gone
        room = sum(self.target) - self.planners - self.renderers - self.starting
        come = min(max(0, self.target[0] - self.planners), room)
        self.planners, self.free[0] = self.planners + come, self.free[0] + come
        if room > come and self.renderers < self.target[1] and not self.starting:
            self.starting = True
            self._after(self.run.start_seconds, "start")

    def _decide(self) -> None:
        is_early = self.now - self.decided < _PERIOD
        if not self.moves or is_early or (self.planners, self.renderers) != self.target or not all(self.counts):
            return
        self.decided = self.now
        plan, render = (total / count for total, count in zip(self.sums, self.counts, strict=True))
        good = self.counts[1] + self.ready + self.rendering
        self.target = choose_split(
            InstanceCell(
                planners=self.planners,
                renderers=self.renderers,
                pending=self.pending + self.planning,
                ready=self.ready + self.rendering,
                plan_seconds=plan,
                render_seconds=render,
                measured=min(self.counts),
                plan_yield=good / self.counts[0],
                start_seconds=self.run.start_seconds,
                slots=self.run.slots,
                most_renderers=self.run.most_renderers,
            )
        )


def end_of(run: InstanceRun, split: Split | None = None) -> float:
    """Return the duration of a run with a fixed or with a dynamic split [s]."""
    return _Simulation(run, split or run.default, moves=split is None).end()


def best_fixed(run: InstanceRun) -> tuple[float, Split]:
    """Return the duration and the numbers of the best fixed split."""
    splits = [(run.cores - renderers, renderers) for renderers in range(1, run.most_renderers + 1)]
    return min((end_of(run, split), split) for split in splits)
