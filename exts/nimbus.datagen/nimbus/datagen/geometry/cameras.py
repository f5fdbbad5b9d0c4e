"""Cameras as matrices: intrinsics, poses and projection."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.layout import Camera
from nimbus.datagen.errors import InputError
from nimbus.datagen.geometry import transforms

GL_T_CV = np.diag([1.0, -1.0, -1.0, 1.0])
"""Transform from OpenCV axes (+Z forward, +Y down) to OpenGL axes (-Z forward, +Y up)."""
_NEAR = 1e-3
"""Smallest depth by which coordinates are divided [m]."""


class BodyRows(dict[str, int]):
    """Row of each body by name, in arrays of poses.

    Args:
        names: Names of the bodies, which may come from the file of an untrusted episode.
    """

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__((name, row) for row, name in enumerate(names))

    def __missing__(self, name: str) -> int:
        """Refuse a body without poses, of a layout that does not belong to them."""
        what = f"the episode has no poses of the body {name[:100]!a}, which its layout needs"
        raise InputError(what, instead="restore the episode from a copy")


def intrinsics(camera: Camera) -> FloatArray:
    """Return the pinhole matrix (3, 3) [px]; the centers of pixels have half-integer coordinates."""
    focal = 0.5 * camera.height / math.tan(0.5 * camera.vertical_fov)
    rows = [[focal, 0.0, 0.5 * camera.width], [0.0, focal, 0.5 * camera.height], [0.0, 0.0, 1.0]]
    return np.array(rows, dtype=np.float64)


def camera_poses(
    camera: Camera, names: Mapping[str, int], body_positions: FloatArray, body_wxyz: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the positions (K, 3) [m] and orientations (K, 4) wxyz of a camera in the world, with OpenGL axes.

    Args:
        camera: Camera; a mounted camera moves with its link.
        names: Row of each body in the arrays, by name.
        body_positions: (K, B, 3) positions in the world [m].
        body_wxyz: (K, B, 4) orientations in the world, wxyz.
    """
    count = len(body_positions)
    if not camera.mount:
        return np.tile(camera.position, (count, 1)), np.tile(camera.wxyz, (count, 1))
    # The pose of a mounted camera is relative to its link, which may move from state to state.
    row = names[camera.mount]
    orientation = body_wxyz[:, row]
    turned = transforms.quat_to_matrix(orientation) @ np.asarray(camera.position, float)
    w, x, y, z = np.moveaxis(np.asarray(orientation, float), -1, 0)
    return body_positions[:, row] + turned, np.stack(transforms.quat_multiply((w, x, y, z), camera.wxyz), axis=-1)


def world_T_camera(positions: FloatArray, wxyz: FloatArray) -> FloatArray:
    """Convert poses with OpenGL axes, positions (K, 3) [m] and wxyz (K, 4), to (K, 4, 4) with OpenCV axes."""
    # Stored poses have the axes of USD and MuJoCo, while images and projections use those of OpenCV.
    matrices = np.tile(np.eye(4), (len(positions), 1, 1))
    matrices[:, :3, :3], matrices[:, :3, 3] = transforms.quat_to_matrix(wxyz), positions
    return matrices @ GL_T_CV


def project(camera: Camera, pose: FloatArray, points: FloatArray) -> FloatArray:
    """Project points (n, 3) into an image; return (n, 3) column, row [px] and depth [m], negative behind the camera.

    Args:
        camera: Camera, used for its size and field of view; its distortion is ignored.
        pose: ``world_T_camera`` (4, 4), OpenCV axes.
        points: (n, 3) points in the world [m].
    """
    seen, matrix = (points - pose[:3, 3]) @ pose[:3, :3], intrinsics(camera)
    # Points in the camera's plane would divide by zero; their depth is returned unchanged, for callers to test.
    depth = np.where(np.abs(seen[:, 2:]) > _NEAR, seen[:, 2:], _NEAR)
    return np.hstack([seen[:, :2] / depth * np.diag(matrix)[:2] + matrix[:2, 2], seen[:, 2:]])


def is_in_picture(camera: Camera, projected: FloatArray) -> NDArray[np.bool_]:
    """Return, for points (n, 3) from :func:`project`, True if they are in front of the camera and inside the image."""
    places, depth = projected[:, :2], projected[:, 2]
    return (depth > _NEAR) & (places >= 0).all(axis=1) & (places < (camera.width, camera.height)).all(axis=1)


def projected_width(camera: Camera, pose: FloatArray, points: FloatArray) -> float:
    """Return the width [px] of the box around projected points, including parts outside the image.

    The width is 0 if a point is behind the camera. The arguments are those of :func:`project`.
    """
    projected = project(camera, pose, points)
    return float(np.ptp(projected[:, 0])) if projected[:, 2].min() > _NEAR else 0.0
