"""Rows of a demonstration with the arm and the object in its hand moved off their path, for training.

Execution noise ends before the grasp, because in the hand it costs yield. So no recorded row shows a held object off
its path, and a policy that drifts there is not led back. These rows are computed: the joints are moved, the poses of
the tool and of the held object follow from kinematics, and the recorded commands stay as they are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.trajectory import Trajectory
from nimbus.datagen.geometry.transforms import quat_multiply, quat_to_matrix
from nimbus.datagen.robots.robot import Manipulator, Robot
from nimbus.datagen.robots.urdf import assemble, axis_of, child_of

SIGMA = 0.02
"""Standard deviation of the displacement of each rotating joint [rad], about 2 cm at the hand of a Panda."""
_SQUEEZE, _STANDING = 0.05, 0.1
"""Distance of the fingers from their command beyond which they hold something, and the speed below which they stand,
both relative to the travel between open and closed."""
_BEFORE, _AFTER = 1, 3
"""Rows before and after a row in which the gripper's command must not change: fingers that are about to open do so
with the arm in place."""
_CARRIED, _FIXED = 0.02, 0.005
"""Smallest travel of the tool while it holds an object, and largest motion of that object in the hand [m]."""


@dataclass(frozen=True, kw_only=True)
class HeldSpan:
    """Consecutive rows in which an arm moves with an object in its hand."""

    arm: Manipulator
    held: str
    """Name of the object."""
    rows: NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class DisplacedRows:
    """Displaced copies of rows of a trajectory; the meaning of the fields is that of :class:`Trajectory`."""

    rows: NDArray[np.int64]
    """(N,) indices of the original rows."""
    joint_positions: FloatArray
    body_positions: FloatArray
    body_wxyz: FloatArray


def joint_axes(robot: Robot) -> dict[str, tuple[str, FloatArray]]:
    """Return the link and the axis (3,) in its frame of each rotating joint; the axis is through the link's origin."""
    joints = assemble(robot.pieces, robot=robot.name).findall("joint")
    turning = (joint for joint in joints if joint.get("type") in ("revolute", "continuous"))
    return {joint.get("name", ""): (child_of(joint), axis_of(joint)) for joint in turning}


def find_held_spans(robot: Robot, trajectory: Trajectory, objects: Collection[str]) -> Iterator[HeldSpan]:
    """Find the rows in which an arm moves with an object in its hand and does not move its fingers.

    Args:
        robot: The robot.
        trajectory: Trajectory of the episode.
        objects: Names of the objects that can be held.
    """
    bodies = [name for name in trajectory.body_names if name in objects]
    for arm in robot.arms:
        rows = np.flatnonzero(_is_squeezing(robot, arm, trajectory))
        for span in np.split(rows, np.flatnonzero(np.diff(rows) > 1) + 1):
            tool = trajectory.body_names.index(arm.tool.link)
            places = trajectory.body_positions[span, tool]
            if not len(span) or np.ptp(places, axis=0).max() < _CARRIED:
                continue
            turns = quat_to_matrix(trajectory.body_wxyz[span, tool])
            for name in bodies:
                there = trajectory.body_positions[span, trajectory.body_names.index(name)]
                in_hand = np.einsum("tij,ti->tj", turns, there - places)
                if np.ptp(in_hand, axis=0).max() < _FIXED:
                    yield HeldSpan(arm=arm, held=name, rows=span)


def _is_squeezing(robot: Robot, arm: Manipulator, trajectory: Trajectory) -> NDArray[np.bool_]:
    """Check for each row (T,) whether the fingers stand still on something, and are not about to move."""
    gripper = arm.gripper
    finger = trajectory.joint_names.index(gripper.joints[0])
    entry = robot.action_index[robot.joint_names.index(gripper.joints[0])]
    command, travel = trajectory.actions[:, entry], gripper.open - gripper.closed
    away = (trajectory.joint_positions[:, finger] - command) / travel
    found = (away > _SQUEEZE) & (np.abs(trajectory.joint_velocities[:, finger] / travel) < _STANDING)
    last = len(command) - 1
    for shift in range(-_BEFORE, _AFTER + 1):
        found &= command[np.clip(np.arange(len(command)) + shift, 0, last)] == command
    return found


def displace_rows(
    span: HeldSpan, trajectory: Trajectory, axes: Mapping[str, tuple[str, FloatArray]], offsets: FloatArray
) -> DisplacedRows:
    """Move the joints of an arm in the rows of a span; its tool and the held object follow.

    Other links keep their poses, because policies do not observe them.

    Args:
        span: The rows, the arm and the object.
        trajectory: Trajectory of the episode.
        axes: As :func:`joint_axes` returns them.
        offsets: (N, J) displacement of each joint of the arm [rad]; joints that do not rotate stay.
    """
    names, rows = trajectory.body_names, span.rows
    joints, positions, wxyz = (
        values[rows].copy() for values in (trajectory.joint_positions, trajectory.body_positions, trajectory.body_wxyz)
    )
    moved = [names.index(span.arm.tool.link), names.index(span.held)]
    for joint, offset in reversed(list(zip(span.arm.arm.joints, offsets.T, strict=True))):  # the hand's joint first
        if joint not in axes:
            continue
        link, axis = axes[joint]
        body = names.index(link)
        # The original axis: each rotation comes after those of the joints beyond it, so nothing before it has moved.
        world = quat_to_matrix(trajectory.body_wxyz[rows, body]) @ axis
        half = offset[:, None] / 2
        turn = np.concatenate([np.cos(half), np.sin(half) * world], axis=1)
        center = trajectory.body_positions[rows, body]
        joints[:, trajectory.joint_names.index(joint)] += offset
        for index in moved:
            arm = positions[:, index] - center
            positions[:, index] = center + np.einsum("tij,tj->ti", quat_to_matrix(turn), arm)
            wxyz[:, index] = _product(turn, wxyz[:, index])
    return DisplacedRows(rows=rows, joint_positions=joints, body_positions=positions, body_wxyz=wxyz)


def _product(one: FloatArray, other: FloatArray) -> FloatArray:
    """Return the products (N, 4) of quaternions (N, 4)."""
    parts = quat_multiply(tuple(one.T), tuple(other.T))  # pyright: ignore[reportArgumentType]
    return np.stack(parts, axis=1)
