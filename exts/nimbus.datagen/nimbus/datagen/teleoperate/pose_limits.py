"""Distances between poses of a tool, and limits to them."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from nimbus.datagen.arrays import FloatArray


def pose_difference(start: FloatArray, end: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the way (3,) [m] and the rotation vector (3,) [rad] from one pose to another."""
    return end[:3, 3] - start[:3, 3], Rotation.from_matrix(end[:3, :3] @ start[:3, :3].T).as_rotvec()


def limit_axes(start: FloatArray, end: FloatArray, *, most: float, most_turn: float) -> FloatArray:
    """Limit the way from one pose to another along each axis [m], and the rotation about each axis [rad].

    A limit along one axis leaves the others as they are: the tool does not drift.
    """
    way, turn = pose_difference(start, end)
    pose = end.copy()
    if np.abs(way).max() > most:
        pose[:3, 3] = start[:3, 3] + np.clip(way, -most, most)
    if np.abs(turn).max() > most_turn:
        pose[:3, :3] = Rotation.from_rotvec(np.clip(turn, -most_turn, most_turn)).as_matrix() @ start[:3, :3]
    return pose


def move_toward(start: FloatArray, end: FloatArray, *, most: float, most_turn: float = np.inf) -> FloatArray:
    """Interpolate from one pose toward another, up to some distance and angle from the first [m, rad]."""
    way, turn = pose_difference(start, end)
    length, angle = float(np.linalg.norm(way)), float(np.linalg.norm(turn))
    pose = start.copy()
    pose[:3, 3] += way * min(1.0, most / max(length, 1e-12))
    pose[:3, :3] = Rotation.from_rotvec(turn * min(1.0, most_turn / max(angle, 1e-12))).as_matrix() @ start[:3, :3]
    return pose
