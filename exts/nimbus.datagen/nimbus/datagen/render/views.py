"""Cameras as matrices: intrinsics and poses of every view."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen import rotations
from nimbus.datagen.layout import Camera

Float = NDArray[np.float64]

GL_T_CV = np.diag([1.0, -1.0, -1.0, 1.0])
"""Turns OpenCV axes (+Z forward, +Y down) into OpenGL axes (-Z forward, +Y up)."""


def intrinsics(camera: Camera) -> Float:
    """Pinhole matrix (3, 3) [px]; pixel centres lie at half-integers."""
    focal = 0.5 * camera.height / math.tan(0.5 * camera.vertical_fov)
    rows = [[focal, 0.0, 0.5 * camera.width], [0.0, focal, 0.5 * camera.height], [0.0, 0.0, 1.0]]
    return np.array(rows, dtype=np.float64)


def camera_poses(
    camera: Camera, names: Mapping[str, int], body_positions: Float, body_wxyz: Float
) -> tuple[Float, Float]:
    """Positions (K, 3) and orientations (K, 4) wxyz, OpenGL axes, world frame.

    Args:
        camera: The camera; a mounted one moves with its link.
        names: Row of each body.
        body_positions: (K, B, 3) [m]
        body_wxyz: (K, B, 4)
    """
    count = len(body_positions)
    if not camera.mount:
        return np.tile(camera.position, (count, 1)), np.tile(camera.wxyz, (count, 1))
    row = names[camera.mount]
    orientation = body_wxyz[:, row]
    turned = rotations.to_matrix(orientation) @ np.asarray(camera.position, float)
    return body_positions[:, row] + turned, _multiply(orientation, np.asarray(camera.wxyz, float))


def world_T_camera(positions: Float, wxyz: Float) -> Float:
    """(K, 4, 4) with OpenCV axes, from poses with OpenGL axes."""
    matrices = np.tile(np.eye(4), (len(positions), 1, 1))
    matrices[:, :3, :3], matrices[:, :3, 3] = rotations.to_matrix(wxyz), positions
    return matrices @ GL_T_CV


def _multiply(one: Float, other: Float) -> Float:
    w, x, y, z = np.moveaxis(one, -1, 0)
    a, b, c, d = other
    product = (
        w * a - x * b - y * c - z * d,
        w * b + x * a + y * d - z * c,
        w * c - x * d + y * a + z * b,
        w * d + x * c - y * b + z * a,
    )
    return np.stack(product, axis=-1)
