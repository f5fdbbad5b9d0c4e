"""Cuts of a demonstration: the rows of each subtask, its arms, and the object in whose frame it is expressed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nimbus.datagen.datasets.multiply.contact_rows import WORLD, ContactRows
from nimbus.datagen.datasets.multiply.intervals import WorkInterval, find_intervals
from nimbus.datagen.datasets.multiply.source import Demonstration
from nimbus.datagen.errors import InputError
from nimbus.datagen.execute.demonstrations.demonstration_file import HAND

LEAST_ROWS = 2
"""Smallest number of rows of a subtask."""


@dataclass(frozen=True, kw_only=True)
class SubtaskCut:
    """Rows ``[start, stop)`` of a demonstration that show one subtask."""

    arms: tuple[str, ...]
    verb: str
    """Verb, such as ``take``, ``put``, ``move`` or ``work on``."""
    frame: str
    """Object, or part of one as ``OBJECT.PART``, in whose frame the take is expressed; empty for the world."""
    start: int
    stop: int


def find_cuts(
    demonstration: Demonstration, rows: ContactRows, *, related: Mapping[str, Sequence[str]]
) -> tuple[SubtaskCut, ...]:
    """Find the subtasks of a demonstration from its contacts, in order of time.

    Args:
        demonstration: States of the demonstration.
        rows: Contacts of the demonstration.
        related: For each object, the other objects to which the conditions of success relate it. An object that is put
            down beside such an object is placed relative to it.

    Raises:
        InputError: No arm touches an object.
    """
    intervals = [one for name in rows.arms for one in find_intervals(demonstration, rows, name)]
    intervals = [one for one in intervals if one.gripped or any(name != WORLD for name in one.touched)]
    if not intervals:
        what = "has no contacts: no hand touches an object"
        raise InputError(what, where=demonstration.name, instead="remove it, or record a demonstration of the task")
    cuts = []
    for group in _groups(sorted(intervals, key=lambda one: (one.start, one.arm)), demonstration):
        frame, verb = _frame(group, demonstration, rows, related)
        start, stop = min(one.start for one in group), max(one.stop for one in group)
        arms = tuple(sorted({one.arm for one in group}, key=list(rows.arms).index))
        cuts.append(SubtaskCut(arms=arms, verb=verb, frame=frame, start=start, stop=stop))
    return _separate(cuts)


def _separate(cuts: Sequence[SubtaskCut]) -> tuple[SubtaskCut, ...]:
    """Let each cut begin after the earlier ones of its arms, so that no motion is repeated twice.

    Cuts of one arm alone never overlap. A cut of two arms ends with the slower one; the other arm may have begun its
    next subtask by then.
    """
    free: dict[str, int] = {}
    separate = []
    for one in cuts:
        start = max(one.start, *(free.get(arm, 0) for arm in one.arms))
        if one.stop - start >= LEAST_ROWS:
            separate.append(replace(one, start=start))
            free |= dict.fromkeys(one.arms, one.stop)
    return tuple(sorted(separate, key=lambda one: one.start))


def _groups(intervals: list[WorkInterval], demonstration: Demonstration) -> list[list[WorkInterval]]:
    """Group intervals of several arms that overlap in time and concern the same movable object."""
    groups: list[list[WorkInterval]] = []
    for one in intervals:
        things = _movable(one, demonstration)
        for group in groups:
            if any(
                other.arm != one.arm
                and other.start < one.stop
                and one.start < other.stop
                and things & _movable(other, demonstration)
                for other in group
            ):
                group.append(one)
                break
        else:
            groups.append([one])
    return groups


def _movable(interval: WorkInterval, demonstration: Demonstration) -> set[str]:
    free = {item.name for item in demonstration.layout.objects if not item.anchored}
    return {*interval.gripped, interval.held_before, interval.held_after} & free


def _frame(
    group: list[WorkInterval], demonstration: Demonstration, rows: ContactRows, related: Mapping[str, Sequence[str]]
) -> tuple[str, str]:
    """Return the object in whose frame a subtask is expressed (empty for the world), and the verb."""
    objects = {item.name for item in demonstration.layout.objects}
    one = group[0]
    if len(group) > 1:
        gives = [one for one in group if one.held_before in objects]
        # A handover is relative to no object: the hands meet at a point in the world.
        if gives:
            return "", "hand over"
        one = next((one for one in group if one.gripped), one)
        return _worked_on(one, demonstration), "take together"
    held = one.held_before
    if held not in objects:
        if one.gripped:
            verb = "take" if one.held_after in objects else "move"
            return _worked_on(one, demonstration), verb
        return _worked_on(one, demonstration), "work on"
    others = [name for name in one.touched if name.split(".")[0] != held]
    things = [name.split(".")[0] for name in others if name != WORLD]
    verb = "put" if one.held_after != held else "work with"
    below = _supports(demonstration, rows, held, one.stop)
    for name in (*below, *things):
        if name != WORLD and name != held:
            return name, verb
    near = related.get(held, ())
    if len(near) == 1:
        return near[0], verb
    if verb == "work with" and not others:
        return _nearest(demonstration, held, one), verb
    return "", verb


def _worked_on(interval: WorkInterval, demonstration: Demonstration) -> str:
    """Return the object, or the moving part of one, that an arm grips or touches first; empty for the world.

    Handles are at different places of different cabinets, but at the same place of their drawers.
    """
    name = interval.gripped[0] if interval.gripped else interval.touched[0]
    if name == WORLD:
        return ""
    return name if name in demonstration.bodies else name.split(".")[0]


def _supports(demonstration: Demonstration, rows: ContactRows, held: str, stop: int) -> list[str]:
    """Return the objects, other than hands, that an object touches after an interval."""
    names = rows.neighbours[min(stop, demonstration.row_count - 1)].get(held, frozenset())
    return sorted(name.split(".")[0] for name in names if not name.startswith(HAND))


def _nearest(demonstration: Demonstration, held: str, interval: WorkInterval) -> str:
    """Return the object that is horizontally nearest to a carried object in the middle of an interval."""
    row = (interval.start + interval.stop) // 2
    place = demonstration.bodies[held][row, :2, 3]
    others = [item.name for item in demonstration.layout.objects if item.name != held]
    return min(
        others, key=lambda name: float(np.linalg.norm(demonstration.bodies[name][row, :2, 3] - place)), default=""
    )
