"""Rotations and transforms: unit quaternions (wxyz) as plain tuples, and matrices ``a_T_b``."""

from __future__ import annotations

import math
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from nimbus.datagen.arrays import FloatArray, Quaternion

_Number = TypeVar("_Number", float, FloatArray)


def quat_multiply(
    one: tuple[_Number, _Number, _Number, _Number], other: Quaternion
) -> tuple[_Number, _Number, _Number, _Number]:
    """Return the product ``one * other``: a rotation by ``other``, then by ``one``. Its entries may be arrays."""
    w1, x1, y1, z1 = one
    w2, x2, y2, z2 = other
    return (
        w1 * w2 - x1 * x2 - y1 * y2 - z1 * z2,
        w1 * x2 + x1 * w2 + y1 * z2 - z1 * y2,
        w1 * y2 - x1 * z2 + y1 * w2 + z1 * x2,
        w1 * z2 + x1 * y2 - y1 * x2 + z1 * w2,
    )


def quat_from_axis_angle(axis: ArrayLike, angle: float) -> Quaternion:
    """Return the quaternion of a rotation by ``angle`` [rad] about an axis of any length."""
    x, y, z = np.asarray(axis, dtype=float) / np.linalg.norm(axis)
    sine = math.sin(angle / 2)
    return math.cos(angle / 2), float(x * sine), float(y * sine), float(z * sine)


def quat_to_matrix(wxyz: ArrayLike) -> FloatArray:
    """Return the rotation matrices (..., 3, 3) of unit quaternions (..., 4)."""
    quaternions = np.asarray(wxyz, dtype=float)
    w, x, y, z = np.moveaxis(quaternions, -1, 0) if quaternions.ndim > 1 else quaternions.tolist()
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    if quaternions.ndim == 1:
        return np.array(rows)
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def quat_from_matrix(rotation: ArrayLike) -> Quaternion:
    """Return the unit quaternion of a rotation matrix (3, 3), with w >= 0."""
    # Isaac Sim's Python uses the rest of this file, and lacks MuJoCo.
    from nimbus.datagen.geometry.mujoco_library import mujoco

    wxyz = np.empty(4)
    mujoco.mju_mat2Quat(wxyz, np.ascontiguousarray(rotation, dtype=float).ravel())
    w, x, y, z = (float(value) for value in wxyz * (1.0 if wxyz[0] >= 0 else -1.0))
    return w, x, y, z


def make_transform(position: ArrayLike, wxyz: ArrayLike) -> FloatArray:
    """Return the homogeneous matrix (4, 4) of a position (3,) and a rotation wxyz."""
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = quat_to_matrix(wxyz), position
    return matrix


def look_at(position: ArrayLike, target: ArrayLike, *, up: ArrayLike = (0.0, 0.0, 1.0)) -> Quaternion:
    """Return the orientation of a camera with OpenGL axes (looks along -Z, +Y up) that looks at a point."""
    backward = np.subtract(position, target).astype(float)
    backward /= np.linalg.norm(backward)
    right = np.cross(np.asarray(up, dtype=float), backward)
    right /= np.linalg.norm(right)
    return quat_from_matrix(np.stack([right, np.cross(backward, right), backward], axis=1))
