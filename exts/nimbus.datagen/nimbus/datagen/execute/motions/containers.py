"""Release of a held object inside an open container."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from nimbus.datagen.geometry.transforms import quat_from_axis_angle, quat_to_matrix

if TYPE_CHECKING:
    from nimbus.datagen.arrays import FloatArray
    from nimbus.datagen.execute.motions.release import Release
    from nimbus.datagen.tasks.workcell_interface import Workcell


_WALL = 0.012
"""Margin to the bounds of an open fixture: its walls and some clearance [m]."""
_ROOM = 0.002
"""Clearance to the walls of an object's cavity [m]."""
_OVER_RIM = (0.05, 0.02)
"""Heights above the rim at which the straight descent begins [m]; the lower one is the fallback."""
_TURNS = np.radians([0, 90, -90, 45, -45, 180, 135, -135, 20, -20, 70, -70])
"""Rotations of the hand about the vertical [rad]."""
_TURN_COUNT = 12
"""Number of rotations that are tried; those that fit best come first."""
_SHIFT_COUNT = 3
"""Number of offsets from the center that are tried in a container with contents."""
_AS_FAR = 0.01
"""Difference of distances from the contents up to which two offsets are equally good [m]. Their order is then fixed:
otherwise the millimeters by which attempts differ would choose between offsets to both sides of the contents."""


def room_inside(cell: Workcell, name: str) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the space inside an open fixture or object: frame (4, 4) in the world, lower and upper corner (3,) [m].

    Raises:
        SkillFailure: The object has no cavity.
    """
    if name in cell.stage.fixtures:
        low, high = (np.array(corner) for corner in cell.fixture(name).bounds)
        return cell.pose(name), low + (_WALL, _WALL, _WALL), high - (_WALL, _WALL, 0.0)
    frame, (low, high) = cell.cavity(name)
    return frame, low + (_ROOM, _ROOM, 0.0), high - (_ROOM, _ROOM, 0.0)


def releases_inside(
    cell: Workcell, name: str, world_T_box: FloatArray, low: FloatArray, high: FloatArray, *, drop: float
) -> Iterator[Release]:
    """Yield releases of the held object into a container, the most promising first.

    Args:
        cell: The scene, with the object in the hand.
        name: The object.
        world_T_box: (4, 4) frame of the space inside.
        low: (3,) lower corner [m].
        high: (3,) upper corner [m], at the height of the rim.
        drop: Height of the object above the container's floor at its release [m].
    """
    tool_T_object = cell.tool_T_held()
    vertices, turn_now = cell.model(name).vertices, cell.tool_pose()[:3, :3]
    candidates = []
    for yaw in _TURNS:
        turn = quat_to_matrix(quat_from_axis_angle((0, 0, 1), float(yaw))) @ turn_now
        object_turn = world_T_box[:3, :3].T @ turn @ tool_T_object[:3, :3]
        points = vertices @ object_turn.T
        lower, upper = points.min(axis=0), points.max(axis=0)
        # Sorted by the overflow, then by the rotation of the hand. Rounding makes ties independent of the last bit.
        overflow = np.maximum((upper - lower)[:2] - (high - low)[:2], 0.0).sum()
        candidates.append((round(float(overflow), 3), abs(float(yaw)), float(yaw), lower, upper, object_turn))
    best = sorted(candidates, key=lambda entry: entry[:3])[:_TURN_COUNT]
    shifts = _shifts(cell, world_T_box, low, high)
    for over, raised, shift in itertools.product(_OVER_RIM, (0.0, 0.03, 0.07, 0.12), shifts):
        for _, _, _, lower, upper, object_turn in best:
            room = np.maximum((high - low)[:2] - (upper - lower)[:2], 0.0) / 2
            middle = (low + high)[:2] / 2 + np.clip(shift, -room, room)
            release = np.eye(4)
            release[:3, :3] = object_turn
            release[:2, 3] = middle - (lower + upper)[:2] / 2
            release[2, 3] = low[2] + drop + raised - lower[2]
            # The straight descent begins with the whole object above the rim.
            above = release.copy()
            above[2, 3] = max(high[2] + over - lower[2], release[2, 3])
            object_T_tool = np.linalg.inv(tool_T_object)
            yield world_T_box @ above @ object_T_tool, world_T_box @ release @ object_T_tool


def _shifts(cell: Workcell, world_T_box: FloatArray, low: FloatArray, high: FloatArray) -> list[FloatArray]:
    """Return offsets from the center (2,) [m], furthest from existing contents first."""
    size = (high - low)[:2]
    shifts = [np.zeros(2), *(0.25 * size * np.array(sign) for sign in ((1, 0), (-1, 0), (0, 1), (0, -1)))]
    box_T_world = np.linalg.inv(world_T_box)
    places = [(box_T_world @ cell.pose(name))[:2, 3] - (low + high)[:2] / 2 for name in cell.released]
    inside = [place for place in places if np.all(np.abs(place) < size / 2)]
    if not inside:
        return shifts[:1]
    return sort_by_distance(shifts, inside)[:_SHIFT_COUNT]


def sort_by_distance(shifts: Sequence[FloatArray], places: Sequence[FloatArray]) -> list[FloatArray]:
    """Return offsets (2,), the furthest from all places (2,) first; equally good ones keep their order [m]."""
    left = [(min(float(np.linalg.norm(shift - place)) for place in places), shift) for shift in shifts]
    order: list[FloatArray] = []
    while left:
        furthest = max(distance for distance, _ in left)
        chosen = next(n for n, (distance, _) in enumerate(left) if distance > furthest - _AS_FAR)
        order.append(left.pop(chosen)[1])
    return order
