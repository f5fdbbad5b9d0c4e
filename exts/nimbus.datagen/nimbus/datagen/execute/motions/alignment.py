"""Alignment of a frame of the held object with another frame: pegs with holes, rings and handles with hooks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from nimbus.datagen.episode.trajectory import Reason
from nimbus.datagen.execute.motions.pushing import plan_straight
from nimbus.datagen.geometry.transforms import quat_from_axis_angle, quat_to_matrix
from nimbus.datagen.tasks.statements import SkillFailure

if TYPE_CHECKING:
    from nimbus.datagen.arrays import FloatArray
    from nimbus.datagen.tasks.workcell_interface import SceneState, Workcell


def find_frame(cell: SceneState, name: str, frame: str) -> FloatArray:
    """Return ``object_T_frame`` (4, 4) of a named frame of an object.

    Raises:
        SkillFailure: The object has no such frame.
    """
    frames = cell.model(name).frames
    if frame not in frames:
        known = ", ".join(frames) or "none"
        raise SkillFailure(Reason.NO_ROOM, f"{name} has no frame '{frame}'; it has: {known}")
    return frames[frame]


def make_facing_pose(world_T_frame: FloatArray, *, turns: Iterable[float], against: bool = True) -> list[FloatArray]:
    """Return poses whose z axis is parallel or opposite to a frame's z axis, rotated about it.

    Args:
        world_T_frame: (4, 4) pose of the frame, translation in [m].
        turns: Angles about z [rad].
        against: True if the z axes are opposite.

    Returns:
        A pose (4, 4) in the world for each angle, translation in [m].
    """
    over = np.diag([1.0, -1.0, -1.0]) if against else np.eye(3)
    poses = []
    for turn in turns:
        pose = world_T_frame.copy()
        pose[:3, :3] = world_T_frame[:3, :3] @ quat_to_matrix(quat_from_axis_angle((0, 0, 1), float(turn))) @ over
        poses.append(pose)
    return poses


def shift_pose(world_T_frame: FloatArray, way: FloatArray) -> FloatArray:
    """Translate a pose by a displacement (3,) along the world axes [m]."""
    pose = world_T_frame.copy()
    pose[:3, 3] += way
    return pose


class Alignment:
    """Moves the held object so that one of its frames reaches given poses.

    Args:
        cell: The scene, with the object in the hand.
        name: The held object.
        object_T_frame: (4, 4) pose of the frame in the object's frame.
        touching: Bodies that the object may touch in a straight motion.
    """

    def __init__(self, cell: Workcell, name: str, object_T_frame: FloatArray, *, touching: Iterable[str]) -> None:
        self._cell, self._name, self._frame = cell, name, object_T_frame
        self._touching = (name, *touching)

    @property
    def frame(self) -> FloatArray:
        """Return ``world_T_frame`` (4, 4) of the object's frame."""
        return self._cell.pose(self._name) @ self._frame

    def tool_at(self, world_T_frame: FloatArray) -> FloatArray:
        """Return ``world_T_tool`` (4, 4) that brings the object's frame to a pose."""
        return world_T_frame @ np.linalg.inv(self._cell.tool_T_held() @ self._frame)

    def carry(self, poses: Iterable[FloatArray], final: Iterable[FloatArray]) -> FloatArray:
        """Move freely to the nearest of several poses from which the final pose is reachable as well.

        Args:
            poses: Poses ``world_T_frame`` (4, 4) before the final motion.
            final: The final pose (4, 4) for each of them.

        Returns:
            Final pose (4, 4) that belongs to the chosen pose.
        """
        cell = self._cell
        # If no final pose is reachable, all poses are planned for: the planner's error then states the reason.
        pairs = [(self.tool_at(pose), end) for pose, end in zip(poses, final, strict=True)]
        reached = [
            (tool, end)
            for tool, end in pairs
            if (q := cell.scene.arm.solve(tool, cell.arm_command)) is not None
            and cell.scene.arm.solve(self.tool_at(end), q) is not None
        ] or pairs
        plan = cell.move_to([tool for tool, _ in reached])
        return reached[plan.goal_index][1]

    def line(self, world_T_frame: FloatArray, *, speed: float = 0.1) -> None:
        """Move the frame in a straight line to a pose; contact with the mating part is expected.

        Args:
            world_T_frame: (4, 4) pose to reach, translation in [m].
            speed: Largest speed of the tool [m/s].
        """
        plan_straight(self._cell, self.tool_at(world_T_frame), speed=speed, touching=self._touching)
