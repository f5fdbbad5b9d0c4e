"""Optical flow from depth and poses; it is exact, and equal for all renderers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.layout import Camera
from nimbus.datagen.episode.observation import CameraFrames
from nimbus.datagen.geometry.cameras import BodyRows, camera_poses, world_T_camera
from nimbus.datagen.geometry.transforms import quat_to_matrix


def flow_to_next(
    frames: CameraFrames,
    body: NDArray[np.int16],
    camera: Camera,
    names: Sequence[str],
    now: tuple[FloatArray, FloatArray],
    following: tuple[FloatArray, FloatArray],
) -> NDArray[np.float16]:
    """Return (K, H, W, 2) optical flow of a pinhole camera's frames; NaN for a step without a next one.

    Args:
        frames: Frames of K steps.
        body: (K, H, W) row of the visible body; -1 for static parts.
        camera: The camera.
        names: B body names.
        now: Positions (K, B, 3) [m] and orientations (K, B, 4) of the bodies.
        following: Poses one step later; K - 1 of them at the end of an episode.
    """
    count, rows = len(following[0]), BodyRows(names)
    flow = np.full((*frames.depth.shape, 2), np.nan, dtype=np.float16)
    if count:
        flow[:count] = optical_flow(
            frames.depth[:count],
            body[:count],
            frames.intrinsics,
            frames.world_T_camera[:count],
            world_T_camera(*camera_poses(camera, rows, *following)),
            _matrices(now[0][:count], now[1][:count]),
            _matrices(*following),
        )
    return flow


def _matrices(positions: FloatArray, wxyz: FloatArray) -> FloatArray:
    """Return poses as matrices (K, B, 4, 4)."""
    found = np.tile(np.eye(4), (*positions.shape[:2], 1, 1))
    found[..., :3, :3], found[..., :3, 3] = quat_to_matrix(wxyz), positions
    return found


def optical_flow(
    depth: NDArray[np.float32],
    body: NDArray[np.int16],
    matrix: FloatArray,
    world_T_camera: FloatArray,
    next_world_T_camera: FloatArray,
    world_T_body: FloatArray,
    next_world_T_body: FloatArray,
) -> NDArray[np.float16]:
    """Return (K, H, W, 2) [px] right and down, from a point's pixel to its pixel in the next step's image.

    The target may lie outside the image or be hidden there. The flow is NaN where nothing was hit, or where a point
    moves behind the camera.

    Args:
        depth: (K, H, W) [m] along the optical axis; 0 where nothing was hit.
        body: (K, H, W) row of the visible body; -1 for static parts.
        matrix: (3, 3) pinhole matrix [px].
        world_T_camera: (K, 4, 4), OpenCV axes.
        next_world_T_camera: (K, 4, 4) one step later.
        world_T_body: (K, B, 4, 4) poses of the bodies.
        next_world_T_body: (K, B, 4, 4) one step later.
    """
    count, height, width = depth.shape
    u, v = np.meshgrid(np.arange(width) + 0.5, np.arange(height) + 0.5)
    rays = np.stack([u, v, np.ones_like(u)], axis=-1) @ np.linalg.inv(matrix).T
    # An identity is appended as the last body, because static parts have row -1, which is the last one.
    moved = np.concatenate([next_world_T_body @ np.linalg.inv(world_T_body), np.tile(np.eye(4), (count, 1, 1, 1))], 1)
    camera_T_camera = np.linalg.inv(next_world_T_camera)[:, None] @ moved @ world_T_camera[:, None]
    to_pixels = matrix @ camera_T_camera[:, :, :3]
    flow = np.full((count, height, width, 2), np.nan, dtype=np.float16)
    for step in range(count):
        seen = depth[step] > 0
        points = rays[seen] * depth[step][seen][:, None]
        chosen = to_pixels[step][body[step][seen]]  # index -1: last matrix, of static parts
        place = np.einsum("nij,nj->ni", chosen[:, :, :3], points) + chosen[:, :, 3]
        behind = place[:, 2] <= 1e-6
        target = place[:, :2] / np.where(behind, np.nan, place[:, 2])[:, None]
        flow[step][seen] = target - np.stack([u[seen], v[seen]], axis=-1)
    return flow
