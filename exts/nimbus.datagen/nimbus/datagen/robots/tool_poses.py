"""Poses of a robot's tools over an episode, in the world frame."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.trajectory import EndEffectors
from nimbus.datagen.geometry.transforms import quat_multiply, quat_to_matrix
from nimbus.datagen.robots.robot import Robot


def find_end_effectors(robot: Robot, names: Sequence[str], positions: FloatArray, wxyz: FloatArray) -> EndEffectors:
    """Return the pose of each arm's tool frame: z out of the hand, y along the closing direction.

    Args:
        robot: The robot.
        names: Names of the B bodies.
        positions: (T, B, 3) positions of the bodies in the world frame [m].
        wxyz: (T, B, 4) orientations of the bodies in the world frame, unit quaternions.
    """
    places, turns = [], []
    for one in robot.arms:
        row = names.index(one.tool.link)
        link = wxyz[:, row]
        places.append(positions[:, row] + quat_to_matrix(link) @ np.asarray(one.tool.position, dtype=float))
        w, x, y, z = np.moveaxis(link, -1, 0)
        turns.append(np.stack(quat_multiply((w, x, y, z), one.tool.wxyz), axis=-1))  # pyright: ignore[reportArgumentType]
    return EndEffectors(
        names=robot.arm_names, positions=np.stack(places, axis=1), wxyz=np.stack(turns, axis=1, dtype=np.float64)
    )
