"""Choice of the numbers of planners and renderer instances, where starting an instance costs minutes. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

_MARGIN, _SPREAD = 0.02, 0.5
"""Smallest gain of a change, as a fraction of the remaining time: a fixed part, and a part that is divided by the
square root of the number of measurements, because the mean of a few is inexact."""

_LEAST, _LEAST_IDLE = 16, 2
"""Smallest number of measurements before a change: while episodes remain to be planned, and after that."""

Split = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class InstanceCell:
    """State of a cell whose renderers are instances of another program."""

    planners: int
    renderers: int
    """Number of instances, including those that are starting."""
    starting: int = 0
    """Number of instances that are starting: they start one after another, because two at once block each other."""
    pending: int
    """Number of episodes left to plan, including those being planned."""
    ready: int
    """Number of plans left to render, including those being rendered."""
    plan_seconds: float
    """Mean duration of planning an episode [s]; 0 while unknown."""
    render_seconds: float
    """Mean duration of rendering an episode [s]; 0 while unknown."""
    measured: int
    """Number of episodes that both durations are measured from."""
    plan_yield: float = 1.0
    start_seconds: float
    """Duration of an instance's start [s]."""
    slots: int
    """Largest number of plans that can wait to be rendered."""
    most_renderers: int
    """Number of instances that fit into the memory of the GPUs."""


def choose_split(cell: InstanceCell) -> Split:
    """Return the numbers of planners and instances with which the run ends soonest.

    The current split is kept when another one gains little.

    The total number of workers does not change, because each has a core. A planner starts at once; an instance takes
    ``start_seconds``, during which its core produces nothing.
    """
    now = cell.planners, cell.renderers
    if not (cell.plan_seconds and cell.render_seconds) or cell.measured < (_LEAST if cell.pending else _LEAST_IDLE):
        return now
    total = sum(now)
    least_planners = 1 if cell.pending else 0
    splits = [
        (total - renderers, renderers)
        for renderers in range(1, min(total - least_planners, max(cell.most_renderers, cell.renderers)) + 1)
    ]
    if not splits:
        return now
    remaining = _remaining(cell, now) if now[0] or not cell.pending else math.inf
    best = min(splits, key=lambda split: (_remaining(cell, split), abs(split[1] - cell.renderers)))
    gain = remaining - _remaining(cell, best)
    margin = _MARGIN + _SPREAD / math.sqrt(cell.measured)
    return best if math.isinf(remaining) or gain > margin * remaining else now


def _remaining(cell: InstanceCell, split: Split) -> float:
    """Return the time to the end of the run [s], if a split is kept until planning is done and the best split follows.

    The estimate is a fluid model: plans are made at a constant rate, and instances that still have to start join one
    by one. When all plans are made, planners either exit or make room for further instances.
    """
    planners, renderers = split
    planned = cell.pending * cell.plan_seconds / planners if planners else (math.inf if cell.pending else 0.0)
    work = (cell.ready + cell.plan_yield * cell.pending) * cell.render_seconds
    living = min(cell.renderers, renderers) - min(cell.starting, renderers)
    joins = [number * cell.start_seconds for number in range(1, renderers - living + 1)]
    stays = _end(work, living, joins, render_seconds=cell.render_seconds)
    # Planning cannot end before all but the last ``slots`` plans are rendered, because no more can wait.
    if cell.pending:
        planned = max(
            planned, _end(max(0.0, work - cell.slots * cell.render_seconds), living, joins, render_seconds=0.0)
        )
    # The last plan can be rendered only after it is made.
    ends = [max(stays, planned + (cell.render_seconds if cell.pending else 0.0))]
    more = min(planners, cell.most_renderers - renderers) if cell.pending else 0
    last = max([planned, *joins])
    for count in range(1, more + 1):
        late = [last + number * cell.start_seconds for number in range(1, count + 1)]
        ends.append(
            max(_end(work, living, [*joins, *late], render_seconds=cell.render_seconds), planned + cell.render_seconds)
        )
    return min(ends)


def _end(work: float, living: int, joins: list[float], *, render_seconds: float) -> float:
    """Return the time at which an amount of rendering is done [s].

    Args:
        work: Total time of the rendering [s].
        living: Number of workers from the beginning.
        joins: Times at which further workers join, in order [s].
        render_seconds: Duration of one episode [s].
    """
    now, count, joined = 0.0, living, 0.0
    for time in [*joins, math.inf]:
        if count and work <= count * (time - now):
            # The worker that joined last renders a whole episode, because work is not divisible below that.
            return max(now + work / count, joined)
        work, now, count = work - count * (time - now), time, count + 1
        joined = time + render_seconds
    return math.inf
