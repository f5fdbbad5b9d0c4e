"""Grasps in the air, beside a hand that holds the object already."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nimbus.datagen.execute.motions.grasps import grasp_axes
from nimbus.datagen.geometry.transforms import quat_to_matrix

if TYPE_CHECKING:
    from nimbus.datagen.arrays import FloatArray
    from nimbus.datagen.plan.grasp import GraspAxes
    from nimbus.datagen.tasks.workcell_interface import Workcell


_TURNS = np.arange(24) * (2 * np.pi / 24)
"""Ways to come to an axis [rad]."""
_APART = 0.03
"""[m] Between the middles of the pads of the two hands at least."""
_FAR = 0.07
"""[m] Further apart is no better."""
_LEAST_ANGLE = np.cos(np.radians(35))
"""Two hands that come from nearly the same side would touch."""
_PUTS_DOWN = np.cos(np.radians(62))
"""The object can be put down later: at rest, the hand would come so far from above."""
_ABOVE_TABLE = 0.003
"""[m] Then, the finger tips stay so far above what it is put on."""
_NEAR = 0.03
"""[m] What is so near to the tool's x-z plane can touch the palm."""


def make_handover_grasps(giver: Workcell, receiver: Workcell, name: str, *, limit: int = 24) -> list[FloatArray]:
    """Tool poses (4, 4) in which the receiver can take an object out of the giver's hand, best first.

    Args:
        giver: The arm that holds it.
        receiver: The arm that is to take it.
        name: The object.
        limit: Poses to return at most.
    """
    axes = grasp_axes(receiver.objects[name], receiver.robot.gripper.shape)
    frames, origins, score = _hands(axes, receiver.pose(name))
    hand = giver.tool_pose()
    apart = np.linalg.norm(origins - hand[:3, 3], axis=1)
    same_side = frames[:, :, 2] @ hand[:3, 2]
    away: FloatArray = receiver.pose(name)[:3, 3] - receiver.pose(receiver.base_link())[:3, 3]
    away /= np.linalg.norm(away)
    keep = (apart > _APART) & (same_side < _LEAST_ANGLE)
    from_above = _from_above(receiver, axes, name, frames, origins)
    keep &= from_above > _PUTS_DOWN
    keep &= _depths(axes.vertices, receiver.pose(name), frames, origins) <= axes.gripper.finger_depth
    score = score + np.minimum(apart, _FAR) / _FAR + 0.5 * (frames[:, :, 2] @ away) - 0.3 * same_side
    score = score - 0.3 * np.maximum(frames[:, 2, 2], 0.0) + 0.5 * from_above
    found: list[FloatArray] = []
    for index in np.flatnonzero(keep)[np.argsort(-score[keep], kind="stable")]:
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = frames[index], origins[index]
        if not any(_alike(pose, other) for other in found):
            found.append(pose)
        if len(found) == limit:
            break
    return found


def _hands(axes: GraspAxes, world: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Tool frames (C, 3, 3), origins (C, 3) and how well the pads face the surface, for every way to every axis."""
    closing = axes.directions @ world[:3, :3].T
    middles = axes.middles @ world[:3, :3].T + world[:3, 3]
    any_axis = np.where(np.abs(closing[:, :1]) < 0.7, [[1.0, 0.0, 0.0]], [[0.0, 1.0, 0.0]])
    first = np.cross(closing, any_axis)
    first /= np.linalg.norm(first, axis=1, keepdims=True)
    second = np.cross(closing, first)
    approach = np.cos(_TURNS)[:, None, None] * first + np.sin(_TURNS)[:, None, None] * second
    shape = (len(_TURNS), *closing.shape)
    y = np.broadcast_to(closing, shape).reshape(-1, 3)
    z = approach.reshape(-1, 3)
    frames: FloatArray = np.stack([np.cross(y, z), y, z], axis=2).astype(float)
    origins = np.broadcast_to(middles, shape).reshape(-1, 3)
    return frames, origins, np.tile(axes.alignments, len(_TURNS))


def _from_above(cell: Workcell, axes: GraspAxes, name: str, frames: FloatArray, origins: FloatArray) -> FloatArray:
    """(C,) how much each approach would point down, were the object at rest: in the best of its rest poses.

    A rest pose in which the open fingers would be in the table does not count.
    """
    world_T_object, gripper = cell.pose(name), axes.gripper
    turned = world_T_object[:3, :3].T @ frames
    places = (origins - world_T_object[:3, 3]) @ world_T_object[:3, :3]
    half = 0.5 * np.array([gripper.pad_width, gripper.opening + 2 * gripper.finger_thickness, gripper.pad_height])
    best = np.full(len(frames), -1.0)
    for rest in cell.model(name).rest_poses:
        up = quat_to_matrix(rest.wxyz)[2]
        rows = np.einsum("i,cij->cj", up, turned)
        tips = places @ up - (axes.vertices @ up).min() - np.abs(rows) @ half
        best = np.maximum(best, np.where(tips > _ABOVE_TABLE, -rows[:, 2], -1.0))
    return best


def _depths(vertices: FloatArray, world: FloatArray, frames: FloatArray, origins: FloatArray) -> FloatArray:
    """How far a shape reaches from the pads' middle towards the palm of each hand [m]."""
    points = vertices @ world[:3, :3].T + world[:3, 3]
    x = points @ frames[:, :, 0].T - np.einsum("ij,ij->i", origins, frames[:, :, 0])
    z = points @ frames[:, :, 2].T - np.einsum("ij,ij->i", origins, frames[:, :, 2])
    return np.where(np.abs(x) < _NEAR, -z, 0.0).max(axis=0, initial=0.0)


def _alike(one: FloatArray, other: FloatArray) -> bool:
    return bool(np.abs(one[:3, 3] - other[:3, 3]).max() < 0.008 and one[:3, 2] @ other[:3, 2] > 0.95)
