"""Choice of an idle worker's next activity: plan, render, or wait. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from nimbus.runner.cell.queue.lease import Role

_MARGIN = 1.05
"""Factor by which a switch with a cost must pay off, because the mean of a few measurements is inexact."""


class Choice(StrEnum):
    """Next activity of an idle worker."""

    PLAN = "plan"
    RENDER = "render"
    WAIT = "wait"


@dataclass(frozen=True)
class FreeWorker:
    """Idle worker to be scheduled."""

    role: Role
    switch_seconds: float = 0.0
    """Cost of the first work in the other role [s]; 0 when it has worked there before and kept its components."""
    switch_once: bool = False
    """True when only the first switch has a cost, because the components are kept."""


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """State of the cell at one moment."""

    pending: int
    """Episodes not yet handed out for planning."""
    planning: int
    ready: int
    """Plans that wait to be rendered."""
    free_slots: int
    """Number of further plans that can be held; spill files count when spilling is allowed."""
    slots: int
    """Total number of slots, free or not."""
    planners: int
    """Living workers in this role, busy or idle, the idle worker included."""
    renderers: int
    plan_seconds: float
    """Mean duration of a planning lease with all its attempts [s]; 0 while unknown."""
    render_seconds: float
    """Mean duration of a rendering lease with all its variants [s]; 0 while unknown."""
    plan_yield: float = 1.0
    """Fraction of planning leases that lead to a plan; smoothed, so that it is never 0."""
    fixed: bool = False
    """True when workers keep their roles."""

    @property
    def plan_work(self) -> float:
        """Planning that can still be handed out [s]."""
        return self.pending * self.plan_seconds

    @property
    def render_work(self) -> float:
        """Rendering that can still be handed out, now or later [s]."""
        return (self.ready + self.plan_yield * (self.pending + self.planning)) * self.render_seconds


def choose(worker: FreeWorker, cell: Snapshot) -> Choice:
    """Keep the role while it has work; otherwise switch when the other role has work and switching pays.

    A switch without cost always pays: no worker waits while there is work. A switch with a cost pays when the other
    role's backlog keeps its workers busy for longer than the cost and, while the worker's own role has work to come,
    when the cell's throughput is higher with the switch: see :func:`_makes_more`.
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
        return True  # its benefit is unmeasured, and its cost is paid at most once
    if backlog / colleagues <= cost:
        return False
    return cell.pending == 0 or _makes_more(cell, 1 if to_render else -1, cost, once=worker.switch_once)


def _makes_more(cell: Snapshot, to_render: int, cost: float, *, once: bool) -> bool:
    """Return True if one more worker on the other side raises throughput for the rest of the run, its cost included.

    In a steady state the slower side sets the pace. If the worker's own side is the slower one, the worker is idle only
    for a moment and should wait. Otherwise its move helps permanently if its old side stays the faster one. If its old
    side becomes the slower one, the slots fill up (or run empty) after a while, and the worker has to switch back at
    the same cost; the move then pays only when filling and emptying the slots takes long enough.

    Args:
        cell: State of the cell.
        to_render: 1 from planning to rendering, -1 for the other direction.
        cost: Cost of one switch [s].
        once: True when the way back, and every further switch, costs nothing.
    """
    if not (cell.plan_seconds and cell.render_seconds and cell.plan_yield):
        return False
    # Highest throughput that any split of these workers could reach; the paces below are compared relative to it.
    count = cell.planners + cell.renderers
    best = count / (cell.plan_seconds / cell.plan_yield + cell.render_seconds)
    remaining = (cell.plan_work + cell.render_work) / count
    surplus, pace = _flow(cell, cell.planners, cell.renderers)
    # The worker's own side is the slower one: its idleness is momentary.
    if surplus * to_render <= 0:
        return False
    surplus_then, pace_then = _flow(cell, cell.planners - to_render, cell.renderers + to_render)
    # The switch costs one worker's time, spread over all workers, and is amortized over the remaining work.
    for_good = pace_then / best * _useful(remaining, cost / count)
    # The old side stays faster after the move, so that no worker has to move back.
    if surplus_then * to_render >= 0:
        return for_good > _MARGIN * pace / best
    # Number of slots that can absorb a surplus. In one cycle they fill at one rate and empty at the other.
    buffer = max(1, min(cell.slots - count, cell.plan_yield * cell.pending))
    cycle = buffer / abs(surplus) + buffer / abs(surplus_then)
    to_and_fro = _useful(remaining, cost / count) if once else _useful(cycle, 2 * cost / count)
    return max(for_good, to_and_fro) > _MARGIN * pace / best


def _flow(cell: Snapshot, planners: int, renderers: int) -> tuple[float, float]:
    """Return the surplus of plans over renderings, and the throughput of the slower side [1/s]."""
    made = planners * cell.plan_yield / cell.plan_seconds
    rendered = renderers / cell.render_seconds
    return made - rendered, min(made, rendered)


def _useful(duration: float, loss: float) -> float:
    """Return the useful fraction of a duration [s] when a loss [s] comes on top of it."""
    return duration / (duration + loss)


def default_split(
    cores: int, plan_seconds: float, render_seconds: float, *, plan_yield: float = 1.0
) -> tuple[int, int]:
    """Return the numbers of planners and renderers, one worker per core, with which the slower side is fastest.

    Among equally fast splits, the one with fewest planners is returned. Both numbers are at least one, except on a
    single core, whose planner also renders.
    """
    if cores <= 1:
        return 1, 0
    return max(
        ((planners, cores - planners) for planners in range(1, cores)),
        key=lambda split: min(split[0] * plan_yield * render_seconds, split[1] * plan_seconds),
    )


def limit_split(split: tuple[int, int], most: int) -> tuple[int, int]:
    """Return a split with at most ``most`` workers, and with at least one of each role when two fit.

    A single worker plans, and changes its role to render.
    """
    planners, renderers = split
    while planners + renderers > max(1, most):
        if renderers > planners or planners <= 1 < renderers:
            renderers -= 1
        elif planners > 1 or not renderers:
            planners -= 1
        else:
            renderers -= 1
    return planners, renderers


@dataclass(frozen=True, kw_only=True)
class Resize:
    """Steps from one split to another."""

    to_renderer: int = 0
    """Planners that become renderers; negative for the other direction."""
    planners: int = 0
    """Planners to start; negative for those to exit after their current work."""
    renderers: int = 0


def resize(current: tuple[int, int], wanted: tuple[int, int], *, can_switch: bool = True) -> Resize:
    """Switch roles first, where one role has too many workers and the other too few; then start or retire workers.

    Args:
        current: Planners and renderers.
        wanted: Likewise.
        can_switch: True when workers can change roles.
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
