"""Choice of the axes in which a demonstrated motion is repeated: those of an object, or those of the world."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.execute.demonstrations.demonstration_file import Take, matrix_of, pose_row

if TYPE_CHECKING:
    from nimbus.datagen.datasets.multiply.subtasks import Subtask

_LEAST_TAKES = 3
"""Smallest number of takes from which the axes of a motion can be determined."""
_DIFFERENT, _AGREED = 0.015, 0.5
"""Spread of the key positions in the object's axes above which the takes disagree [m]. In the world's axes, the takes
agree if their spread is at most this fraction of the spread in the object's axes."""


def agree_on_axes(column: tuple[Subtask, ...]) -> tuple[Subtask, ...]:
    """Use the axes of the world for a subtask if its takes agree there, and disagree in the axes of the object.

    For example, a block is put to the left of another block regardless of the rotation of the latter. A single
    demonstration, or a motion that only picks up the object, cannot show this; it keeps the axes of the object.

    Args:
        column: Takes of one subtask, one per demonstration.
    """
    if len(column) < _LEAST_TAKES or not column[0].frame or not all(_carries(one) for one in column):
        return column
    turns = np.array([matrix_of(one.take.base_T_frame)[:3, :3] for one in column])
    places = np.array([_key_place(one.take) for one in column])
    own = _spread(places)
    if own < _DIFFERENT or _spread(np.einsum("nij,nj->ni", turns, places)) > _AGREED * own:
        return column
    return tuple(_in_world_axes(one) for one in column)


def _carries(subtask: Subtask) -> bool:
    return bool(next(iter(subtask.take.tracks.values())).held)


def _key_place(take: Take) -> FloatArray:
    """Return the position (3,) of the carried object when it is put down, or at the end of the take [m]."""
    track = next(iter(take.tracks.values()))
    assert track.tool_T_held is not None
    opened = [event.row for event in track.events if event.action == "open"]
    row = min(opened[-1] if opened else len(track.poses) - 1, len(track.poses) - 1)
    return (matrix_of(track.poses[row]) @ matrix_of(track.tool_T_held))[:3, 3]


def _spread(places: FloatArray) -> float:
    return float(np.sqrt(places.var(axis=0).sum()))


def _in_world_axes(subtask: Subtask) -> Subtask:
    take, turn = subtask.take, np.eye(4)
    turn[:3, :3] = matrix_of(take.base_T_frame)[:3, :3]
    tracks = {
        arm: track.model_copy(update={"poses": tuple(pose_row(turn @ pose) for pose in track.matrices())})
        for arm, track in take.tracks.items()
    }
    base = np.eye(4)
    base[:3, 3] = take.base_T_frame[:3]
    moved = take.model_copy(update={"tracks": tracks, "base_T_frame": pose_row(base)})
    return replace(subtask, take=moved, axes="world")
