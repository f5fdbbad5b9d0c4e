"""Demonstrations as input of multiplication, independent of the format of the dataset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.layout import PhysicalLayout
from nimbus.datagen.episode.trajectory import TELEOPERATION, SkillSegment
from nimbus.datagen.errors import InputError
from nimbus.datagen.geometry.transforms import quat_to_matrix
from nimbus.datagen.robots.robot import Robot
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.datagen.store.info import read_info
from nimbus.datagen.tasks.task import Task

MOST_SECONDS = 3600.0
"""Longest demonstration [s]; the contacts of each row are computed."""
LEAST_SECONDS = 1.0
"""Shortest demonstration [s]."""
LEAST_RATE, LARGEST_RATE = 4.0, 1000.0
"""Accepted range of rates [Hz]; at lower rates, a grasp may fall between two rows."""


@dataclass(frozen=True, kw_only=True)
class Demonstration:
    """States of one demonstration over T rows."""

    name: str
    task: str
    rate: float
    """Number of rows per second [Hz]."""
    joint_positions: FloatArray
    """(T, J) positions of the robot's joints, in the robot's order [rad or m]."""
    openings: Mapping[str, FloatArray]
    """(T,) commanded positions of each gripper's first joint, by arm [m or rad]."""
    bodies: Mapping[str, FloatArray]
    """``world_T_body`` (T, 4, 4) [m] of objects, their parts and fixtures, by name."""
    layout: PhysicalLayout
    """Objects of the scene with their initial poses."""
    labels: tuple[SkillSegment, ...] = field(default=())
    """Segments of skills; empty for a teleoperated demonstration."""

    @property
    def row_count(self) -> int:
        """Number T of rows."""
        return len(self.joint_positions)

    def check(self) -> None:
        """Check that the demonstration can be cut into subtasks.

        Raises:
            InputError: Its length or rate is out of range, or it contains numbers that are not finite.
        """
        if not LEAST_RATE <= self.rate <= LARGEST_RATE:
            what = f"has a rate of {self.rate:g} Hz"
            instead = f"record at {LEAST_RATE:g} to {LARGEST_RATE:g} Hz; it is resampled to the task's rate"
            raise InputError(what, where=self.name, instead=instead)
        if self.row_count < LEAST_SECONDS * self.rate:
            what = f"has only {self.row_count} rows, {self.row_count / self.rate:.1f} s"
            raise InputError(what, where=self.name, instead=f"give demonstrations of at least {LEAST_SECONDS:g} s")
        if self.row_count > MOST_SECONDS * self.rate:
            what = f"has {self.row_count} rows, {self.row_count / self.rate:.0f} s; the limit is {MOST_SECONDS:g} s"
            raise InputError(what, where=self.name, instead="cut it into demonstrations of the task")
        numbers = (self.joint_positions, *self.openings.values(), *self.bodies.values())
        if not all(np.isfinite(rows).all() for rows in numbers):
            raise InputError("contains numbers that are not finite", where=self.name, instead="remove this episode")


def read_nimbus_set(folder: Path, *, task: Task, robot: Robot, limit: int | None = None) -> list[Demonstration]:
    """Read the demonstrations of a Nimbus dataset.

    Args:
        folder: Folder of the dataset.
        task: Task for which they are multiplied.
        robot: Robot of the task.
        limit: Largest number of demonstrations, in order of their names; all by default.

    Raises:
        InputError: There are no demonstrations, or they have another robot or lack objects of the task.
    """
    info = read_info(folder)
    if info.robot and info.robot != robot.name:
        what = f"the demonstrations have the robot '{info.robot}', the task '{task.name}' has '{robot.name}'"
        raise InputError(what, where=str(folder), instead="give demonstrations of the task's robot")
    paths = sorted((folder / "episodes").glob("*.hdf5"))[:limit]
    if not paths:
        raise InputError("has no demonstrations", where=str(folder), instead="record some, or give another dataset")
    return [_read_episode(path, task=task, robot=robot) for path in paths]


def _read_episode(path: Path, *, task: Task, robot: Robot) -> Demonstration:
    with EpisodeFile(path) as episode:
        layout, trajectory = episode.layout(), episode.trajectory()
    if trajectory.joint_names != robot.joint_names:
        what = f"its joints {', '.join(trajectory.joint_names[:3])}, … are not those of '{robot.name}'"
        raise InputError(what, where=path.name, instead="give demonstrations of the task's robot")
    groups = {item.group for item in layout.physical.objects}
    if missing := [name for name in task.objects if name not in groups]:
        what = f"has no object '{missing[0]}', which the task '{task.name}' needs; its own task is '{layout.key.task}'"
        raise InputError(what, where=path.name, instead="give demonstrations of the same task")
    poses = np.tile(np.eye(4), (*trajectory.body_positions.shape[:2], 1, 1))
    poses[..., :3, :3] = quat_to_matrix(trajectory.body_wxyz)
    poses[..., :3, 3] = trajectory.body_positions
    gripper = {
        name: trajectory.actions[:, place] for name, place in zip(robot.arm_names, gripper_entries(robot), strict=True)
    }
    return Demonstration(
        name=path.stem,
        task=layout.key.task,
        rate=trajectory.rate,
        joint_positions=trajectory.joint_positions,
        openings=gripper,
        bodies={name: poses[:, place] for place, name in enumerate(trajectory.body_names)},
        layout=layout.physical,
        labels=tuple(one for one in trajectory.segments if one.skill != TELEOPERATION),
    )


def gripper_entries(robot: Robot) -> list[int]:
    """Return the index of each arm's gripper in an action."""
    counts = [len(one.arm.joints) + 1 for one in robot.arms]
    return [sum(counts[: index + 1]) - 1 for index in range(len(counts))]
