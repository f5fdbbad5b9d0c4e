"""Intervals in which an arm interacts with an object; between them, it moves freely.

An interval extends a hand's breadth beyond the first and the last contact, so that the planner can reach both ends.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.datasets.multiply.contact_rows import WORLD, ArmRows, ContactRows
from nimbus.datagen.datasets.multiply.source import Demonstration

_APPROACH, _RETREAT = 0.07, 0.07
"""Travel of the tool before the first contact, and after the last one, that belongs to an interval [m]."""
_SAME = 0.05
"""Largest travel of the tool between two contacts within one interval [m]."""
_PAUSE = 0.35
"""Longest gap without contact within an interval [s]."""
_LEAST_GRIP = 0.2
"""Shortest grasp [s]; shorter contacts of all fingers are accidental."""
_STEADY_GRIP = 0.05
"""Largest change of the opening with which fingers that touch an object still hold it, as a fraction of the full."""
_TILT = np.radians(25)
"""Smallest tilt of a carried object, relative to its pose when lifted, that counts as intended, as in pouring [rad]."""
_OPENING = 0.97
"""Opening above which the fingers hold nothing, as a fraction of the full opening."""


@dataclass(frozen=True, kw_only=True)
class WorkInterval:
    """Rows ``[start, stop)`` in which an arm interacts with an object."""

    arm: str
    start: int
    stop: int
    held_before: str
    """Body in the hand at the start; empty for none."""
    held_after: str
    touched: tuple[str, ...]
    """Other objects that the hand or its load touches, the longest contact first; ``world`` for fixed bodies."""
    gripped: tuple[str, ...]
    """Bodies gripped during the interval, in order."""


def find_grips(arm: ArmRows, rate: float) -> list[str]:
    """Return the body in the hand for each of T rows; empty for none.

    Args:
        arm: Rows of an arm.
        rate: Number of rows per second [Hz].
    """
    count = len(arm.touched)
    least = max(2, round(_LEAST_GRIP * rate))
    held = [""] * count
    names = sorted({name for names in arm.gripped for name in names})
    for name in names:
        gripping = np.array([name in arm.gripped[row] and arm.shares[row] < _OPENING for row in range(count)])
        touching = np.array([name in arm.touched[row] for row in range(count)])
        # An object that is pressed onto a table may leave one finger for seconds; the fingers do not move then.
        for (_, stop), (start, _) in zip(runs(gripping)[:-1], runs(gripping)[1:], strict=True):
            is_steady = np.ptp(arm.shares[stop - 1 : start + 1]) <= _STEADY_GRIP
            if touching[stop:start].all() and (start - stop <= least or is_steady):
                gripping[stop:start] = True
        for start, stop in runs(gripping):
            if stop - start >= least:
                held[start:stop] = [name] * (stop - start)
    return held


def find_intervals(demonstration: Demonstration, rows: ContactRows, name: str) -> list[WorkInterval]:
    """Find the intervals of an arm, in order of time.

    Args:
        demonstration: States of the demonstration.
        rows: Contacts of the demonstration.
        name: Name of the arm.
    """
    arm = rows.arms[name]
    held = find_grips(arm, demonstration.rate)
    works = _fill(_working(demonstration, rows, name, held), gap=round(_PAUSE * demonstration.rate))
    spans = _merge(runs(works), arm.tool)
    spans = _cut_at_labels(spans, demonstration, held)
    found: list[WorkInterval] = []
    for index, (first, last) in enumerate(spans):
        before = spans[index - 1][1] if index else 0
        after = spans[index + 1][0] if index + 1 < len(spans) else demonstration.row_count
        start, stop = _widen(arm.tool, first, last, before, after)
        if found and start < found[-1].stop:
            start = found[-1].stop
        touched = _touched(rows, arm, held, first, last)
        gripped = tuple(dict.fromkeys(filter(None, held[start:stop])))
        found.append(
            WorkInterval(
                arm=name,
                start=start,
                stop=stop,
                held_before=held[start],
                held_after=held[stop - 1],
                touched=touched,
                gripped=gripped,
            )
        )
    return [one for one in found if one.stop - one.start >= 2]


def runs(values: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return the maximal runs ``[start, stop)`` of True values."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], values, [False]]).astype(int)))
    return [(int(start), int(stop)) for start, stop in edges.reshape(-1, 2)]


def _fill(values: NDArray[np.bool_], *, gap: int) -> NDArray[np.bool_]:
    """Fill gaps of up to ``gap`` rows between True values."""
    filled = values.copy()
    for (_, stop), (start, _) in zip(runs(values)[:-1], runs(values)[1:], strict=True):
        if start - stop <= gap:
            filled[stop:start] = True
    return filled


def _working(demonstration: Demonstration, rows: ContactRows, name: str, held: list[str]) -> NDArray[np.bool_]:
    """Return flags (T,), True for rows in which an arm does more than move freely."""
    arm, count = rows.arms[name], len(held)
    movable = {item.name for item in demonstration.layout.objects if not item.anchored}
    works = np.zeros(count, dtype=bool)
    for row in range(count):
        if (thing := held[row]) in movable:
            # A held object that touches only the hand is carried; if it touches anything else, it is manipulated.
            others = rows.neighbours[row].get(thing, frozenset()) - {f"hand:{name}"}
            works[row] = bool(others) or bool(arm.touched[row] - {thing})
        else:
            works[row] = bool(thing) or bool(arm.touched[row])
        if row and held[row] != held[row - 1]:
            works[row - 1 : row + 1] = True
    for start, stop in runs(np.array([thing in movable for thing in held])):
        poses = demonstration.bodies[held[start]]
        lifted = next((row for row in range(start, stop) if not works[row]), start)
        axis = poses[lifted, :3, :3]
        for row in range(lifted, stop):
            cosine = (axis[:, 2] @ poses[row, :3, 2]) if held[row] else 1.0
            works[row] |= bool(np.arccos(np.clip(cosine, -1, 1)) > _TILT)
    return works


def _merge(spans: list[tuple[int, int]], tool: FloatArray) -> list[tuple[int, int]]:
    """Merge intervals between which the tool hardly moves."""
    merged: list[tuple[int, int]] = []
    for start, stop in spans:
        if merged and _way(tool, merged[-1][1] - 1, start) < _SAME:
            merged[-1] = (merged[-1][0], stop)
        else:
            merged.append((start, stop))
    return merged


def _cut_at_labels(
    spans: list[tuple[int, int]], demonstration: Demonstration, held: list[str]
) -> list[tuple[int, int]]:
    """Split intervals where a new skill begins with the same object in the hand, which contacts do not show."""
    labels = [one for one in demonstration.labels if one.skill]
    steps = [(one.skill, one.target) for one in labels]
    cuts = [labels[at].start for at in range(1, len(labels)) if steps[at] != steps[at - 1]]
    parts: list[tuple[int, int]] = []
    for start, stop in spans:
        inside = [cut for cut in cuts if start + 2 < cut < stop - 2 and bool(held[cut]) == bool(held[cut - 1])]
        parts += list(zip((start, *inside), (*inside, stop), strict=True))
    return parts


def _widen(tool: FloatArray, first: int, last: int, before: int, after: int) -> tuple[int, int]:
    """Return an interval extended by approach and retreat, up to its neighbors."""
    start, stop = first, last
    while start > before and _far(tool, first, start) < _APPROACH:
        start -= 1
    while stop < after and _far(tool, last - 1, stop) < _RETREAT:
        stop += 1
    return start, min(stop + 1, after)


def _far(tool: FloatArray, one: int, other: int) -> float:
    return float(np.linalg.norm(tool[one, :3, 3] - tool[min(other, len(tool) - 1), :3, 3]))


def _way(tool: FloatArray, begin: int, end: int) -> float:
    """Return the largest distance of the tool, in rows ``begin`` to ``end``, from its position at ``begin`` [m]."""
    places = tool[begin : end + 1, :3, 3]
    return float(np.linalg.norm(places - places[0], axis=1).max(initial=0.0))


def _touched(rows: ContactRows, arm: ArmRows, held: list[str], first: int, last: int) -> tuple[str, ...]:
    """Return the other objects that an arm or its load touches, the longest contact first, and the world last."""
    counts: dict[str, int] = {}
    for row in range(first, last):
        thing = held[row]
        others = set(arm.touched[row]) | set(rows.neighbours[row].get(thing, frozenset()) if thing else ())
        for other in others - {thing}:
            if not other.startswith("hand:"):
                counts[other] = counts.get(other, 0) + 1
    return tuple(sorted(counts, key=lambda name: (name == WORLD, -counts[name], name)))
