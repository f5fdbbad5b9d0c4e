"""Positions of keypoints in images, and their visibility; the computation is the same for all renderers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.observation import CameraFrames, Keypoints
from nimbus.datagen.geometry.transforms import quat_to_matrix
from nimbus.datagen.render.camera_model.lens import is_inside

HIDDEN, VISIBLE = 1, 2
"""Values of ``keypoint_visibility`` inside the image, as in COCO; 0 means outside."""
_MARGIN = 0.002
"""Largest distance of a surface in front of a keypoint that still counts as visible [m]. Simplified meshes of the robot
deviate by less. The width of a pixel is added, because the depth of a surface at 45 degrees varies by this much within
a pixel."""
_NEAR = 1e-3
"""Smallest depth of a keypoint in front of the camera [m]."""


def with_keypoints(
    frames: CameraFrames, keypoints: Keypoints, rows: Mapping[str, int], positions: FloatArray, wxyz: FloatArray
) -> CameraFrames:
    """Add the positions of keypoints to a pinhole camera's frames; visibility is decided by the depth of the frames.

    Args:
        frames: Frames of K steps.
        keypoints: Q keypoints.
        rows: Row of each body by name.
        positions: (K, B, 3) [m], world frame.
        wxyz: (K, B, 4) unit quaternions.
    """
    places = in_camera(keypoints, rows, positions, wxyz, frames.world_T_camera)
    pixels = project_keypoints(places, frames.intrinsics)
    return replace(
        frames,
        keypoints_3d=places.astype(np.float32),
        keypoints_2d=pixels.astype(np.float32),
        keypoint_visibility=judge_visibility(pixels, places[..., 2], frames.depth, frames.intrinsics),
    )


def in_camera(
    keypoints: Keypoints, rows: Mapping[str, int], positions: FloatArray, wxyz: FloatArray, world_T_camera: FloatArray
) -> FloatArray:
    """Return (K, Q, 3) keypoints in the frames of cameras (K, 4, 4) with OpenCV axes [m]."""
    bodies = [rows[name] for name in keypoints.bodies]
    turned = np.einsum("kqij,qj->kqi", quat_to_matrix(wxyz[:, bodies]), keypoints.positions)
    world = positions[:, bodies] + turned
    return (world - world_T_camera[:, None, :3, 3]) @ world_T_camera[:, :3, :3]


def project_keypoints(places: FloatArray, intrinsics: FloatArray) -> FloatArray:
    """Return (K, Q, 2) column and row [px] of points (K, Q, 3) in the frame of a pinhole camera; NaN behind it."""
    depth = np.where(places[..., 2:] > _NEAR, places[..., 2:], np.nan)
    return places[..., :2] / depth * np.diag(intrinsics)[:2] + intrinsics[:2, 2]


def judge_visibility(
    pixels: FloatArray, distance: FloatArray, depth: NDArray[np.float32], intrinsics: FloatArray
) -> NDArray[np.uint8]:
    """Return the visibility (K, Q) of points: 2 if visible, 1 if behind a surface, 0 if outside the image.

    Args:
        pixels: (K, Q, 2) column and row [px].
        distance: (K, Q) along the optical axis [m].
        depth: (K, H, W) of the surfaces [m]; 0 for nothing.
        intrinsics: (3, 3) pinhole matrix [px].
    """
    count, height, width = depth.shape
    inside = is_inside(pixels, width, height)
    column, row = (np.where(inside, pixels[..., axis], 0).astype(int) for axis in (0, 1))
    surface = depth[np.arange(count)[:, None], row, column]
    margin = _MARGIN + distance / intrinsics[0, 0]
    is_free = (surface == 0) | (surface > distance - margin)
    return np.where(inside, np.where(is_free, VISIBLE, HIDDEN), 0).astype(np.uint8)
