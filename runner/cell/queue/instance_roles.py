"""Choice of the numbers of planners and renderer instances, where starting an instance costs minutes. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

_MARGIN, _SPREAD = 0.02, 0.5
"""Smallest gain of a change, as a fraction of the remaining time: a fixed part, and one that falls with the square root
of the number of measurements, because means of few are inexact."""

_LEAST, _LEAST_IDLE = 16, 2
"""Smallest number of measurements; fewer are enough for planners that have nothing left to do."""

Split = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class InstanceCell:
    """State of a cell whose renderers are instances of another program."""

    planners: int
    renderers: int
    """Instances that live, those that start included."""
    starting: int = 0
    """Instances that start: one after another, because two that start at once block each other."""
    pending: int
    """Episodes that are to be planned, those in work included."""
    ready: int
    """Plans that are to be rendered, those in work included."""
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
    """Number of plans that can wait; further ones cannot be made."""
    most_renderers: int
    """Number of instances that fit into the memory of the GPUs."""


def choose_split(cell: InstanceCell) -> Split:
    """Return the numbers of planners and instances with which the cell ends first.

    The present ones are kept where another split gains little.

    The workers stay as many as they are: each has a core. A planner starts at once; an instance costs
    ``start_seconds``, during which its core makes nothing.
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
    """Return the time to the end with a split until planning is done, and the better one of two after it [s].

    A fluid estimate: plans are made at a constant pace; instances render as many as there are; those that are still
    to start join one by one. When the plans are made, planners either leave or make room for further instances.
    """
    planners, renderers = split
    planned = cell.pending * cell.plan_seconds / planners if planners else (math.inf if cell.pending else 0.0)
    work = (cell.ready + cell.plan_yield * cell.pending) * cell.render_seconds
    living = min(cell.renderers, renderers) - min(cell.starting, renderers)
    joins = [number * cell.start_seconds for number in range(1, renderers - living + 1)]
    stays = _end(work, living, joins, render_seconds=cell.render_seconds)
    # Plans cannot be made further ahead than they can wait.
    if cell.pending:
        planned = max(
            planned, _end(max(0.0, work - cell.slots * cell.render_seconds), living, joins, render_seconds=0.0)
        )
    # The last plan is rendered after it is made.
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
    """Return when some work [s] is done by workers of which some join later [s], in pieces of ``render_seconds``."""
    now, count, joined = 0.0, living, 0.0
    for time in [*joins, math.inf]:
        if count and work <= count * (time - now):
            # One that joins late renders at least one episode, or would not have helped.
            return max(now + work / count, joined)
        work, now, count = work - count * (time - now), time, count + 1
        joined = time + render_seconds
    return math.inf
