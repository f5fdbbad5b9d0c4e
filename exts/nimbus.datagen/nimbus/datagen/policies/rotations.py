"""Conversion between rotation matrices and the forms ``6d``, ``quaternion`` and ``euler``."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from scipy.spatial.transform import Rotation

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.trajectory import Reason
from nimbus.datagen.geometry.transforms import quat_from_matrix, quat_to_matrix
from nimbus.datagen.policies.policy import PolicyFault

ROTATION_NAMES = {
    "6d": ("r11", "r21", "r31", "r12", "r22", "r32"),
    "quaternion": ("qw", "qx", "qy", "qz"),
    "euler": ("roll", "pitch", "yaw"),
}
"""Names of the entries by form: two columns of the matrix; a unit quaternion; angles about the fixed axes x, y, z
[rad]."""
ROTATION_LIMITS = {"6d": 1.0, "quaternion": 1.0, "euler": 2 * np.pi}
"""Largest absolute value of an entry; angles are within half a turn of a reference, which is within one turn."""
_SHORTEST = 1e-6
"""Length below which the direction of a column or quaternion is undefined."""


def rotation_numbers(rotation: FloatArray, form: str, *, near: FloatArray) -> FloatArray:
    """Return the entries of a rotation matrix (3, 3) in a form.

    Args:
        rotation: The matrix.
        form: A key of :data:`ROTATION_NAMES`.
        near: (3, 3) reference. The sign of a quaternion and the full turns of angles are chosen nearest to it, so that
            the entries do not jump where the tool works. It must be the same for all rows of a dataset.
    """
    if form == "6d":
        return rotation[:, :2].T.ravel()
    if form == "quaternion":
        wxyz, other = np.array(quat_from_matrix(rotation)), np.array(quat_from_matrix(near))
        return wxyz if wxyz @ other >= 0 else -wxyz
    angles, other = _angles(rotation), _angles(near)
    return angles + 2 * np.pi * np.round((other - angles) / (2 * np.pi))


def rotation_matrix(numbers: Sequence[float] | FloatArray, form: str) -> FloatArray:
    """Return the matrix (3, 3) of entries in a form, after orthonormalizing columns or normalizing a quaternion.

    Raises:
        PolicyFault: The entries have no direction.
    """
    entries = np.asarray(numbers, dtype=float)
    if form == "euler":
        return Rotation.from_euler("xyz", entries).as_matrix()
    if form == "quaternion":
        if (length := np.linalg.norm(entries)) < _SHORTEST:
            raise PolicyFault(Reason.BAD_ACTION, "the quaternion is zero")
        return quat_to_matrix(entries / length)
    one, two = entries[:3], entries[3:]
    lengths = np.linalg.norm(one), np.linalg.norm(np.cross(one, two))
    if min(lengths) < _SHORTEST:
        raise PolicyFault(Reason.BAD_ACTION, "the columns of a rotation are zero or parallel")
    x, z = one / lengths[0], np.cross(one, two) / lengths[1]
    return np.stack([x, np.cross(z, x), z], axis=1)


def _angles(rotation: FloatArray) -> FloatArray:
    with warnings.catch_warnings():
        # At a pitch of 90 degrees SciPy warns and returns one of the solutions.
        warnings.simplefilter("ignore", UserWarning)
        return Rotation.from_matrix(rotation).as_euler("xyz")
