"""Rest poses of an object on the faces of its convex hull."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.arrays import FloatArray, Quaternion
from nimbus.datagen.geometry.hulls import qhull
from nimbus.datagen.objects.model import RestPose

_LEAST_TILT = np.deg2rad(6.0)
"""Smallest tilt margin of an accepted pose, unless no pose has it [rad]."""
_SAME_FACE = np.cos(np.deg2rad(1.0))
_TOUCHES = -5e-5
"""Signed distance to a face's plane above which a corner touches the face [m]; negative is inside."""
_STRAIGHT, _SIDEWAYS = 0.98, 0.8
"""Cosines of the angle between the object's axis and the vertical, for standing and for lying."""

Face = tuple[FloatArray, float, float]
"""Outward normal, tilt margin [rad], height of the origin [m]."""


def rest_poses(
    points: FloatArray, center_of_mass: FloatArray, *, names: Sequence[str], lies_on: str
) -> tuple[RestPose, ...]:
    """Return stable poses, upright first; one is always named ``lying``.

    Args:
        points: (n, 3) of the contact geometry, object frame [m].
        center_of_mass: (3,) [m].
        names: Names of the poses to return in addition to ``lying``.
        lies_on: Meaning of ``lying``: on a ``side``, on its ``base`` (flat objects), or in ``any`` pose.
    """
    faces = _supporting_faces(points, center_of_mass)
    stable = [face for face in faces if face[1] >= _LEAST_TILT] or [_best(faces)]
    wanted = {
        "side": [face for face in faces if abs(face[0][2]) < _SIDEWAYS],
        "base": [face for face in stable if face[0][2] < -_SIDEWAYS],
        "any": stable,
    }[lies_on]
    lying = _best(wanted or stable)
    others = [face for face in stable if face is not lying]
    found = {
        "upright": [face for face in others if face[0][2] < -_STRAIGHT],
        "lying": [lying],
        "on_side": [face for face in others if abs(face[0][2]) < _SIDEWAYS and abs(face[0] @ lying[0]) < 0.5],
        "inverted": [face for face in others if face[0][2] > _STRAIGHT],
    }
    poses = []
    for name, candidates in found.items():
        if candidates and (name in names or name == "lying"):
            down, tilt, height = _best(candidates)
            poses.append(RestPose(name=name, wxyz=turn_down(down), height=height, tilt_margin=tilt))
    return tuple(poses)


def _best(faces: list[Face]) -> Face:
    """Return the face with the largest tilt margin; of equal ones, the first."""
    return max(faces, key=lambda face: round(face[1], 6))


def _supporting_faces(points: FloatArray, center_of_mass: FloatArray) -> list[Face]:
    """Return the faces of the hull on which the object is stable: its center of mass is above their interior."""
    hull = qhull(points)
    normals, offsets = hull.equations[:, :3], hull.equations[:, 3]
    found: list[Face] = []
    corners = points[hull.vertices]
    may = _is_above_box(corners - center_of_mass, normals, corners @ normals.T + offsets > _TOUCHES)
    for normal, offset in zip(normals[may], offsets[may], strict=True):
        if any(normal @ known[0] > _SAME_FACE for known in found):
            continue
        touching = corners[corners @ normal + offset > _TOUCHES]
        margin = _margin(touching, normal, center_of_mass)
        height = -(center_of_mass @ normal + offset)
        if margin > 0:
            found.append((normal, float(np.arctan2(margin, height)), float(-offset)))
    return found


def _is_above_box(corners: FloatArray, normals: FloatArray, touching: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return (F,) flags, True if the center of mass (the origin) is above the bounding box of a face.

    This test is cheap, and necessary for a stable face.

    Args:
        corners: (V, 3) corners of the hull, relative to the center of mass [m].
        normals: (F, 3) outward unit normals of the faces.
        touching: (V, F) flags, True if a corner lies on a face.
    """
    found = np.ones(len(normals), bool)
    for axis in np.eye(3):
        along = corners @ np.cross(normals, axis).T
        found &= np.where(touching, along, np.inf).min(axis=0) <= 0.0
        found &= np.where(touching, along, -np.inf).max(axis=0) >= 0.0
    return found


def _margin(polygon: FloatArray, normal: FloatArray, center: FloatArray) -> float:
    """Return the distance [m] of the projected center from the border of a convex face; negative outside."""
    from scipy.spatial import QhullError

    x, y, z = normal
    across = np.array([y, -x, 0.0] if abs(z) < 0.9 else [0.0, z, -y])  # perpendicular to the normal and to z or x
    across /= np.linalg.norm(across)
    up = np.array([y * across[2] - z * across[1], z * across[0] - x * across[2], x * across[1] - y * across[0]])
    flat = np.column_stack([(polygon - center) @ across, (polygon - center) @ up])
    try:
        border = qhull(flat).equations
    except QhullError:
        return -1.0
    return float((-border[:, 2]).min())


def turn_down(normal: FloatArray) -> Quaternion:
    """Return the smallest rotation (wxyz) that turns a direction of the object to point down."""
    down = np.array([0.0, 0.0, -1.0])
    axis, cosine = np.cross(normal, down), float(normal @ down)
    length = np.linalg.norm(axis)
    turn = np.array([np.pi, 0, 0]) if cosine < 0 else np.zeros(3)
    if length > 1e-9:
        turn = axis / length * np.arctan2(length, cosine)
    from scipy.spatial.transform import Rotation

    x, y, z, w = Rotation.from_rotvec(turn).as_quat()
    return (float(w), float(x), float(y), float(z))
