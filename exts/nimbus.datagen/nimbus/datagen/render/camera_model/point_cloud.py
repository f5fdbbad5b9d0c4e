"""Point clouds of stored images, made from depth on demand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.arrays import FloatArray, ImageArray
from nimbus.datagen.episode.layout import Camera
from nimbus.datagen.episode.observation import CameraFrames
from nimbus.datagen.render.camera_model.lens import Lens


@dataclass(frozen=True, kw_only=True)
class PointCloud:
    """Points that one image shows; pixels without depth have none."""

    points: FloatArray
    """(n, 3) world frame [m]"""
    colors: ImageArray
    """(n, 3) sRGB"""
    instance: NDArray[np.uint8]
    """(n,) index into the episode's instance names; no rows where the camera stores no masks"""


def point_cloud(frames: CameraFrames, camera: Camera, *, step: int = 0, stride: int = 1) -> PointCloud:
    """Return the points of one step in the world frame, through the camera's lens.

    Args:
        frames: Frames with depth.
        camera: The camera; its lens distortion is removed.
        step: Row of the frames.
        stride: Take every n-th pixel along both axes.

    Raises:
        ValueError: The camera stores no depth.
    """
    if not len(frames.depth):
        raise ValueError(f"camera '{camera.name}' stores no depth")
    here = np.s_[::stride, ::stride]
    x, y = pixel_rays(camera, frames)
    depth = frames.depth[step][here].astype(np.float64)
    seen, pose = depth > 0, frames.world_T_camera[step]
    rays = np.stack([x[here], y[here], np.ones_like(depth)], axis=-1)
    masks = frames.instance[step][here][seen] if len(frames.instance) else np.zeros(0, dtype=np.uint8)
    return PointCloud(
        points=(rays * depth[..., None])[seen] @ pose[:3, :3].T + pose[:3, 3],
        colors=frames.rgb[step][here][seen],
        instance=masks,
    )


def pixel_rays(camera: Camera, frames: CameraFrames) -> tuple[FloatArray, FloatArray]:
    """Return (H, W) x and y at depth 1 of the ray through the center of each pixel, OpenCV axes."""
    if any(camera.distortion):
        return Lens(camera).rays
    matrix, (height, width) = frames.intrinsics, frames.depth.shape[1:]
    u, v = np.meshgrid(np.arange(width) + 0.5, np.arange(height) + 0.5)
    return (u - matrix[0, 2]) / matrix[0, 0], (v - matrix[1, 2]) / matrix[1, 1]
