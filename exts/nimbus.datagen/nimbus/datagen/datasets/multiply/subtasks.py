"""Subtasks of a demonstration: the motion of each arm relative to an object, as a take that can be repeated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.datasets.multiply.contact_rows import ArmRows, ContactRows
from nimbus.datagen.datasets.multiply.cuts import SubtaskCut
from nimbus.datagen.datasets.multiply.intervals import find_grips
from nimbus.datagen.datasets.multiply.source import Demonstration
from nimbus.datagen.episode.layout import PlacedObject
from nimbus.datagen.execute.demonstrations.demonstration_file import (
    HAND,
    ON,
    GripperEvent,
    Size,
    Take,
    Track,
    extents_of,
    pose_row,
)
from nimbus.datagen.objects.libraries import open_library

_SMOOTHING = 0.07
"""Standard deviation of the filter that removes tremor from a path [s]."""
_FINGER_TIME = 1.0
"""Time before and after a grip in which changes of the fingers' command belong to the grip [s]."""
_CLOSED, _STEADY = 0.5, 0.01
"""Commanded opening below which fingers count as closed, and change in a row up to which a command is steady, as
fractions of the full opening."""
_STILL, _STILL_TURN = 0.02, 0.1
"""Speeds below which the tool counts as paused [m/s, rad/s]; pauses are removed."""


@dataclass(frozen=True, kw_only=True)
class Subtask(SubtaskCut):
    """Subtask as shown by one demonstration: its cut, and the take of these rows."""

    take: Take
    axes: Literal["thing", "world"] = "thing"
    """Axes in which the take is expressed: those of the body, or those of the world."""


def make_subtasks(demonstration: Demonstration, rows: ContactRows, cuts: Sequence[SubtaskCut]) -> list[Subtask]:
    """Make the take of each cut, in the same order."""
    grips = {name: find_grips(arm, demonstration.rate) for name, arm in rows.arms.items()}
    return [
        Subtask(
            arms=one.arms,
            frame=one.frame,
            start=one.start,
            stop=one.stop,
            verb=one.verb,
            take=_take(demonstration, rows, grips, one),
        )
        for one in cuts
    ]


def _take(demonstration: Demonstration, rows: ContactRows, grips: Mapping[str, Sequence[str]], cut: SubtaskCut) -> Take:
    arms, frame, start, stop = cut.arms, cut.frame, cut.start, cut.stop
    world_T_frame = np.eye(4) if not frame else demonstration.bodies[frame][start]
    base = np.eye(4)
    base[:3, 3] = -rows.base
    kept = _kept(rows, arms, start, stop, demonstration.rate)
    events = {arm: _events(demonstration, rows, grips, arm, frame, start, stop) for arm in arms}
    kept = _without_finger_rows(kept, [span for found in events.values() for span, _ in found])
    tracks = {}
    for arm in arms:
        held = grips[arm][start]
        path = _path(rows, arm, grips[arm], demonstration.rate)[kept]
        # The states of a row result from the command of the previous row: the path shows where the hand has been.
        poses = tuple(pose_row(np.linalg.inv(world_T_frame) @ pose) for pose in path)
        item = next((item for item in demonstration.layout.objects if item.name == held), None)
        in_hand = np.linalg.inv(rows.arms[arm].tool[start]) @ demonstration.bodies[held][start] if item else None
        tracks[arm] = Track(
            poses=poses,
            posture=_posture(rows, arm, start),
            opening=round(float(_opening_at_contact(rows, arm, start, stop, events[arm])), 3),
            held=item.kind if item else "",
            held_size=_size(item) if item else None,
            tool_T_held=None if in_hand is None else pose_row(in_hand),
            events=tuple(
                event.model_copy(update={"row": int(np.searchsorted(kept, span[0]))}) for span, event in events[arm]
            ),
        )
    thing = next((item for item in demonstration.layout.objects if item.name == frame.split(".")[0]), None)
    return Take(
        source=f"{demonstration.name}[{start}:{stop}]",
        kind=thing.kind if thing else "",
        size=_size(thing) if thing else None,
        base_T_frame=pose_row(base @ world_T_frame),
        rate=demonstration.rate,
        tracks=tracks,
    )


def _posture(rows: ContactRows, arm: str, row: int) -> tuple[float, ...] | None:
    """Return the joint positions of an arm in a row [rad or m]; None if unknown."""
    known = rows.arms[arm].postures
    return None if known is None else tuple(np.round(known[row], 4).tolist())


def _size(item: PlacedObject) -> Size:
    """Return the extents of an object along its own axes [m]."""
    return extents_of(open_library(item.library).model(item.kind, item.variant, item.scale).vertices)


def _events(
    demonstration: Demonstration,
    rows: ContactRows,
    grips: Mapping[str, Sequence[str]],
    arm: str,
    frame: str,
    start: int,
    stop: int,
) -> list[tuple[tuple[int, int], GripperEvent]]:
    """Return the gripper events of an arm, each with the range of rows in which its fingers move."""
    held, one = grips[arm], rows.arms[arm]
    near = round(_FINGER_TIME * demonstration.rate)
    found: list[tuple[tuple[int, int], GripperEvent]] = []
    for row in range(start + 1, stop):
        if held[row] == held[row - 1]:
            continue
        least = found[-1][0][0] if found else start  # a grip may slip and close again
        if held[row]:
            begin = max(_closing_began(one.commanded, row, start), least)
            role = _role(rows, grips, arm, frame, row)
            # A motion in the world has no object on which the fingers could close; only their motion is repeated.
            if frame or role.startswith(HAND):
                found.append(((begin, row), GripperEvent(row=0, action="close", opening=0.0, on=role)))
        elif (began := _opening_began(one.commanded, row, near=near, stop=stop)) is not None:
            begin = max(began, least)
            end = max(begin, row)
            while end < stop - 1 and one.shares[end + 1] > one.shares[end] + 0.01:
                end += 1
            found.append(((begin, end), GripperEvent(row=0, action="open", opening=1.0, on="")))
    events = sorted([*found, *_finger_motions(one, found, start, stop, near=near)], key=lambda event: event[0])
    if events and not held[stop - 1] and one.commanded[stop - 1] < _CLOSED and (one.commanded[stop:] > _CLOSED).any():
        # The fingers lost a handle and opened only after the retreat: later subtasks begin with open fingers.
        events.append(((stop - 1, stop - 1), GripperEvent(row=0, action="open", opening=1.0, on="")))
    return events


def _opening_began(commanded: FloatArray, row: int, *, near: int, stop: int) -> int | None:
    """Return the row in which the command begins to open fingers whose grip ends in ``row``; None if it never does.

    Fingers that slip off a handle lose it without a command; they are opened later.
    """
    begin = row
    # Fingers that press on a table may open long after their command.
    while begin > 0 and (row - begin < near or commanded[begin] > _CLOSED):
        if abs(commanded[begin] - commanded[begin - 1]) >= _STEADY:
            break
        begin -= 1
    end = begin
    while begin > 0 and commanded[begin - 1] < commanded[begin] - _STEADY:
        begin -= 1
    if begin < end:
        return begin
    return next((later - 1 for later in range(row, stop) if commanded[later] > commanded[later - 1] + _STEADY), None)


def _finger_motions(
    arm: ArmRows, found: Sequence[tuple[tuple[int, int], GripperEvent]], start: int, stop: int, *, near: int
) -> Iterator[tuple[tuple[int, int], GripperEvent]]:
    """Yield events of fingers that close or open without gripping anything, for example behind a handle."""
    closed = arm.commanded < _CLOSED
    for row in range(start + 1, stop):
        action = "close" if closed[row] else "open"
        spans = [span for span, event in found if event.action == action]
        if closed[row] == closed[row - 1] or any(begin - near <= row <= end + near for begin, end in spans):
            continue
        begin, end = row - 1, row
        while begin > start and abs(arm.commanded[begin] - arm.commanded[begin - 1]) > _STEADY:
            begin -= 1
        while end < stop - 1 and abs(arm.commanded[end + 1] - arm.commanded[end]) > _STEADY:
            end += 1
        yield (begin, end), GripperEvent(row=0, action="set", opening=round(float(arm.commanded[end]), 3), on="")


def _closing_began(commanded: FloatArray, row: int, start: int) -> int:
    """Return the row in which the opening command begins to fall, for a fall that ends in ``row``."""
    begin = row
    # The command may have fallen some rows earlier, before the fingers stopped at the object.
    while begin > start and abs(commanded[begin] - commanded[begin - 1]) < _STEADY:
        begin -= 1
    while begin > start and commanded[begin - 1] > commanded[begin] + _STEADY:
        begin -= 1
    return begin if row - begin < len(commanded) // 4 else row


def _role(rows: ContactRows, grips: Mapping[str, Sequence[str]], arm: str, frame: str, row: int) -> str:
    """Return the role, relative to the subtask, of the body on which an arm closes."""
    name = grips[arm][row]
    for other in rows.arms:
        if other != arm and grips[other][row] == name:
            if not frame:
                return f"{HAND}{other}"
    base, _, part = name.partition(".")
    return f"{ON}.{part}" if part else ON


def _opening_at_contact(
    rows: ContactRows,
    arm: str,
    start: int,
    stop: int,
    events: Sequence[tuple[tuple[int, int], GripperEvent]],
) -> float:
    """Return the commanded opening of the fingers when they reach the object, as a fraction."""
    one = rows.arms[arm]
    first = next((row for row in range(start, stop) if one.touched[row]), start)
    if events:
        first = min(first, max(start, events[0][0][0] - 1))
    return one.commanded[first]


def _kept(rows: ContactRows, arms: tuple[str, ...], start: int, stop: int, rate: float) -> NDArray[np.int64]:
    """Return the rows in which a tool moves, including the first and the last row."""
    kept = [start]
    for row in range(start + 1, stop - 1):
        for arm in arms:
            then, now = rows.arms[arm].tool[kept[-1]], rows.arms[arm].tool[row]
            turn = np.arccos(np.clip((np.trace(then[:3, :3].T @ now[:3, :3]) - 1) / 2, -1.0, 1.0))
            if np.linalg.norm(now[:3, 3] - then[:3, 3]) > _STILL / rate or turn > _STILL_TURN / rate:
                kept.append(row)
                break
    return np.array([*kept, stop - 1])


def _without_finger_rows(kept: NDArray[np.int64], spans: Sequence[tuple[int, int]]) -> NDArray[np.int64]:
    """Remove the rows in which fingers close or open; in the repetition, the gripper takes the time that it needs."""
    inside = np.zeros(len(kept), dtype=bool)
    for begin, end in spans:
        inside |= (kept > begin) & (kept < end)
    inside[[0, -1]] = False
    return kept[~inside]


def _path(rows: ContactRows, arm: str, held: Sequence[str], rate: float) -> FloatArray:
    """Return the path of a tool (T, 4, 4), smoothed in free motion and unchanged in contact.

    In contact, the object has already damped the tremor of the hand, and smoothing a corner of the path could make a
    peg hit the rim of its hole.
    """
    one = rows.arms[arm]
    path = _smooth(one.tool, rate)
    for row, thing in enumerate(held):
        others = rows.neighbours[row].get(thing, frozenset()) - {f"{HAND}{arm}"} if thing else one.touched[row]
        if others:
            path[row] = one.tool[row]
    return path


def _smooth(tool: FloatArray, rate: float) -> FloatArray:
    """Remove the tremor of a hand from a path (T, 4, 4)."""
    from scipy.ndimage import gaussian_filter1d

    sigma = _SMOOTHING * rate
    smooth = gaussian_filter1d(tool, sigma, axis=0, mode="nearest")
    left, _, right = np.linalg.svd(smooth[:, :3, :3])
    smooth[:, :3, :3] = left @ right
    return smooth
