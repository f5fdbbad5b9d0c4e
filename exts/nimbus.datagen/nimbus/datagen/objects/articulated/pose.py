"""Poses of an object's parts from the positions of its joints."""

from __future__ import annotations

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.geometry.transforms import make_transform, quat_from_axis_angle
from nimbus.datagen.objects.model import MovingPart, ObjectModel

_STILL = (1.0, 0.0, 0.0, 0.0)
_SWEEP = np.linspace(0.0, 1.0, 7)


def object_T_part(part: MovingPart, position: float) -> FloatArray:
    """Return the pose (4, 4) of a part in its object's frame at a joint position [rad or m]."""
    joint = part.joint
    if joint.kind == "slide":
        return make_transform(joint.origin + position * joint.axis, _STILL)
    return make_transform(joint.origin, quat_from_axis_angle(joint.axis, position))


def joint_position(part: MovingPart, world_T_object: FloatArray, world_T_part: FloatArray) -> float:
    """Return the joint position [rad or m] that belongs to the world poses (4, 4) of an object and of its part."""
    joint, here = part.joint, np.linalg.inv(world_T_object) @ world_T_part
    if joint.kind == "slide":
        return float((here[:3, 3] - joint.origin) @ joint.axis)
    turn = here[:3, :3]
    sine = 0.5 * joint.axis @ (turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1])
    cosine = 0.5 * (np.trace(turn) - 1.0)
    angle = float(np.arctan2(sine, cosine))
    # arctan2 gives angles within half a turn of 0: choose the turn nearest to the middle of the joint's range.
    middle = 0.5 * sum(joint.range)
    return angle + 2 * np.pi * round((middle - angle) / (2 * np.pi))


def swept_vertices(model: ObjectModel) -> FloatArray:
    """Return (n, 3) vertices of an object, and of its parts at all joint positions, in its own frame [m]."""
    swept = [model.vertices]
    for part in model.parts:
        for position in part.joint.range[0] + _SWEEP * np.ptp(part.joint.range):
            place = object_T_part(part, float(position))
            swept.append(part.vertices @ place[:3, :3].T + place[:3, 3])
    return np.vstack(swept) if model.parts else model.vertices
