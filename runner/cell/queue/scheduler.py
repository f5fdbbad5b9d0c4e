"""What a free worker does next: plan, render, or wait. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from nimbus.runner.cell.queue.lease import Role

_MARGIN = 1.05
"""By which a switch that costs must be better: means of few measurements are not more exact."""


class Choice(StrEnum):
    """What a free worker does next."""

    PLAN = "plan"
    RENDER = "render"
    WAIT = "wait"


@dataclass(frozen=True)
class FreeWorker:
    """The one that is free."""

    role: Role
    switch_seconds: float = 0.0
    """What it takes to work in the other role; 0 when it has been there before and kept what it built."""
    switch_once: bool = False
    """It will keep what it built: only its first switch costs."""


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """The cell as it is now."""

    pending: int
    """Episodes left to be handed out for planning."""
    planning: int
    ready: int
    """Plans that wait to be rendered."""
    free_slots: int
    """Where further plans can go; a place in a file counts when spilling is allowed."""
    slots: int
    """Of which there are so many, free or not."""
    planners: int
    """Living workers in that role, whatever they do, the free one counted."""
    renderers: int
    plan_seconds: float
    """Mean of one lease, all its attempts; 0: not known yet."""
    render_seconds: float
    """Mean of one plan, all its variants; 0: not known yet."""
    plan_yield: float = 1.0
    """Share of the leases for planning that lead to a plan to render; smoothed, so that it is never 0."""
    fixed: bool = False
    """Workers keep their roles."""

    @property
    def plan_work(self) -> float:
        """[s] of planning that can still be handed out."""
        return self.pending * self.plan_seconds

    @property
    def render_work(self) -> float:
        """[s] of rendering that can still be handed out, now or later."""
        return (self.ready + self.plan_yield * (self.pending + self.planning)) * self.render_seconds


def choose(worker: FreeWorker, cell: Snapshot) -> Choice:
    """Stay in one's role while there is work in it; else take the other one, when there is work and it pays.

    A switch that costs nothing always pays: no worker waits while there is anything to do. One that costs pays when
    the other role's backlog would keep its workers busy for longer than the cost, and, while the own role has work to
    come, when the cell makes more with the switch than without: see :func:`_makes_more`.
    """
    work = {
        Role.PLANNER: cell.pending > 0 and cell.free_slots > 0,
        Role.RENDERER: cell.ready > 0,
    }
    choices = {Role.PLANNER: Choice.PLAN, Role.RENDERER: Choice.RENDER}
    other = Role.RENDERER if worker.role is Role.PLANNER else Role.PLANNER
    if work[worker.role]:
        return choices[worker.role]
    if cell.fixed or not work[other] or not _pays(worker, cell):
        return Choice.WAIT
    return choices[other]


def _pays(worker: FreeWorker, cell: Snapshot) -> bool:
    cost = worker.switch_seconds
    to_render = worker.role is Role.PLANNER
    backlog, colleagues = (cell.render_work, cell.renderers) if to_render else (cell.plan_work, cell.planners)
    if cost <= 0 or colleagues == 0:
        return True
    if worker.switch_once and not (cell.render_seconds if to_render else cell.plan_seconds):
        return True  # nobody has measured yet what it would help, and it has to be paid once at most
    if backlog / colleagues <= cost:
        return False
    return cell.pending == 0 or _makes_more(cell, 1 if to_render else -1, cost, once=worker.switch_once)


def _makes_more(cell: Snapshot, to_render: int, cost: float, *, once: bool) -> bool:
    """Whether one worker more on the other side serves the rest of the run, its cost counted.

    In a steady state the slower side sets the pace. If the worker's own side is the slower one, it has nothing to do
    just for the moment, and waits. Otherwise its move helps for good when its old side stays the faster one. When
    that becomes the slower one instead, the slots run full (or empty) after a while, and it has to come back, for
    another cost: worth it when filling and emptying the slots takes long enough.

    Args:
        cell: As it is.
        to_render: 1 from planning to rendering, -1 the other way.
        cost: [s] of one switch.
        once: The way back, and every further switch, costs nothing.
    """
    if not (cell.plan_seconds and cell.render_seconds and cell.plan_yield):
        return False
    count = cell.planners + cell.renderers
    best = count / (cell.plan_seconds / cell.plan_yield + cell.render_seconds)
    remaining = (cell.plan_work + cell.render_work) / count
    surplus, pace = _flow(cell, cell.planners, cell.renderers)
    if surplus * to_render <= 0:
        return False
    surplus_then, pace_then = _flow(cell, cell.planners - to_render, cell.renderers + to_render)
    for_good = pace_then / best * _useful(remaining, cost / count)
    if surplus_then * to_render >= 0:
        return for_good > _MARGIN * pace / best
    buffer = max(1, min(cell.slots - count, cell.plan_yield * cell.pending))
    cycle = buffer / abs(surplus) + buffer / abs(surplus_then)
    to_and_fro = _useful(remaining, cost / count) if once else _useful(cycle, 2 * cost / count)
    return max(for_good, to_and_fro) > _MARGIN * pace / best


def _flow(cell: Snapshot, planners: int, renderers: int) -> tuple[float, float]:
    """Plans that are made beyond those rendered, and episodes that get through, each second."""
    made = planners * cell.plan_yield / cell.plan_seconds
    rendered = renderers / cell.render_seconds
    return made - rendered, min(made, rendered)


def _useful(duration: float, loss: float) -> float:
    return duration / (duration + loss)


def default_split(
    cores: int, plan_seconds: float, render_seconds: float, *, plan_yield: float = 1.0
) -> tuple[int, int]:
    """Planners and renderers for that many cores, one worker each, so that the slower side is as fast as can be.

    Of equally fast splits the one with fewer planners; at least one of each, but for a single core, which has one
    planner that renders as well.
    """
    if cores <= 1:
        return 1, 0
    return max(
        ((planners, cores - planners) for planners in range(1, cores)),
        key=lambda split: min(split[0] * plan_yield * render_seconds, split[1] * plan_seconds),
    )


@dataclass(frozen=True, kw_only=True)
class Resize:
    """How to get from one split to another."""

    to_renderer: int = 0
    """Planners that become renderers; negative: the other way."""
    planners: int = 0
    """Planners to be started; negative: to leave after what they do."""
    renderers: int = 0


def resize(current: tuple[int, int], wanted: tuple[int, int], *, can_switch: bool = True) -> Resize:
    """Change roles first, where one role has too many and the other too few; then start workers, or let them go.

    Args:
        current: Planners and renderers.
        wanted: Likewise.
        can_switch: Workers can change roles.
    """
    planners, renderers = (there - here for here, there in zip(current, wanted, strict=True))
    moved = 0
    if not can_switch:
        return Resize(planners=planners, renderers=renderers)
    if planners < 0 < renderers:
        moved = min(-planners, renderers)
    elif renderers < 0 < planners:
        moved = -min(planners, -renderers)
    return Resize(to_renderer=moved, planners=planners + moved, renderers=renderers - moved)
