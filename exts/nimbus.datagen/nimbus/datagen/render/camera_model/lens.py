"""Lens distortion, applied to a slightly wider pinhole image."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.arrays import FloatArray, IntArray
from nimbus.datagen.episode.layout import Camera
from nimbus.datagen.episode.observation import CameraFrames
from nimbus.datagen.geometry import cameras

_ITERATIONS = 20
"""Number of fixed-point iterations that invert the distortion; the accepted distortions converge much earlier."""


class Lens:
    """Lens that distorts the images of a pinhole camera.

    It follows the Brown-Conrady model with two radial coefficients, as in OpenCV: a ray (x, y, 1) of the undistorted
    camera maps to (x, y)(1 + k1 r² + k2 r⁴). The intrinsics are those of the distorted image.

    Args:
        camera: Camera with its distortion.

    Raises:
        ValueError: The distortion folds the image over.
    """

    def __init__(self, camera: Camera) -> None:
        self._matrix, self._coefficients = cameras.intrinsics(camera), camera.distortion
        x, y = self.rays = self._rays(camera)
        """(H, W) x and y at depth 1 of each pixel's ray, without distortion."""
        # A margin of 2 % keeps bilinear samples inside the wider image.
        scale = 1.02 * max(np.abs(x).max() / self._half_width, np.abs(y).max() / self._half_height)
        tangent = scale * math.tan(0.5 * camera.vertical_fov)
        self.pinhole = replace(camera, vertical_fov=2.0 * math.atan(tangent), distortion=(0.0, 0.0))
        """Camera to render with; it covers everything that the lens sees."""
        wide = cameras.intrinsics(self.pinhole)
        self._sample(wide[0, 0] * x + wide[0, 2], wide[1, 1] * y + wide[1, 2], camera.width, camera.height)

    def _rays(self, camera: Camera) -> tuple[FloatArray, FloatArray]:
        """Return (H, W) undistorted x and y at depth 1 of every pixel, by fixed-point iteration."""
        k1, k2 = camera.distortion
        u, v = np.meshgrid(np.arange(camera.width) + 0.5, np.arange(camera.height) + 0.5)
        seen_x = (u - self._matrix[0, 2]) / self._matrix[0, 0]
        seen_y = (v - self._matrix[1, 2]) / self._matrix[1, 1]
        self._half_width, self._half_height = np.abs(seen_x).max(), np.abs(seen_y).max()
        x, y = seen_x, seen_y
        for _ in range(_ITERATIONS):
            square = x * x + y * y
            factor = 1.0 + square * (k1 + k2 * square)
            x, y = seen_x / factor, seen_y / factor
        square = x * x + y * y
        # This is the derivative of the distorted radius: the mapping is invertible only where it is positive.
        if (1.0 + square * (3.0 * k1 + 5.0 * k2 * square)).min() <= 0.05:
            raise ValueError(f"a distortion of {k1:g}, {k2:g} folds the image of camera '{camera.name}' over")
        return x, y

    def _sample(self, u: FloatArray, v: FloatArray, width: int, height: int) -> None:
        column, row = np.clip(u - 0.5, 0, width - 1.001), np.clip(v - 0.5, 0, height - 1.001)
        left, top = column.astype(int), row.astype(int)
        self._corner: IntArray = (top * width + left).ravel()
        self._nearest: IntArray = (np.rint(row).astype(int) * width + np.rint(column).astype(int)).ravel()
        right, down = ((column - left).ravel(), (row - top).ravel())
        weights = ((1 - right) * (1 - down), right * (1 - down), (1 - right) * down, right * down)
        self._weights = np.stack(weights).astype(np.float32)[..., None]
        self._offsets = (0, 1, width, width + 1)

    def bend(self, frames: CameraFrames) -> CameraFrames:
        """Distort the frames of :attr:`pinhole`; the visibility of instances is not changed."""
        instance = self._labels(frames.instance)
        if frames.keypoints_2d is not None and frames.keypoint_visibility is not None:
            places = self._bent_place(frames.keypoints_2d.astype(np.float64))
            height, width = frames.rgb.shape[1:3]
            seen = np.where(is_inside(places, width, height), frames.keypoint_visibility, np.uint8(0))
            frames = replace(frames, keypoints_2d=places.astype(np.float32), keypoint_visibility=seen)
        return replace(
            frames,
            rgb=self._colors(frames.rgb),
            depth=self._labels(frames.depth),
            instance=instance,
            semantic=self._labels(frames.semantic),
            flow=None if frames.flow is None else self._flow(frames.flow),
            normals=self._labels(frames.normals),
            boxes_2d=frames.boxes_2d
            if np.isnan(frames.boxes_2d).all()
            else boxes_of(instance, frames.boxes_2d.shape[1]),
            intrinsics=self._matrix,
        )

    def _labels(self, images: NDArray) -> NDArray:
        """Sample (K, H, W, …) at the nearest pixel, because labels and depths must not be interpolated."""
        count, height, width, *rest = images.shape
        return images.reshape(count, height * width, *rest)[:, self._nearest].reshape(images.shape)

    def _flow(self, flow: NDArray[np.float16]) -> NDArray[np.float16]:
        """Convert (K, H, W, 2) flow of a pinhole image to flow in the distorted one."""
        _, height, width, _ = flow.shape
        pixels = np.stack(np.meshgrid(np.arange(width) + 0.5, np.arange(height) + 0.5), axis=-1)
        bent = self._bent_place(pixels + flow.astype(np.float64)) - self._bent_place(pixels)
        return self._labels(bent).astype(np.float16)

    def _bent_place(self, pixels: FloatArray) -> FloatArray:
        """Map positions (…, 2) in the pinhole image to the distorted one [px]."""
        (k1, k2), wide = self._coefficients, cameras.intrinsics(self.pinhole)
        rays = (pixels - wide[:2, 2]) / np.diag(wide)[:2]
        square = np.sum(rays * rays, axis=-1, keepdims=True)
        return rays * (1.0 + square * (k1 + k2 * square)) * np.diag(self._matrix)[:2] + self._matrix[:2, 2]

    def _colors(self, images: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Sample (K, H, W, 3) with bilinear interpolation."""
        flat = images.reshape(len(images), -1, 3)
        bent = np.empty_like(flat)
        for row, image in enumerate(flat):
            mixed = sum(
                weight * image[self._corner + offset]
                for weight, offset in zip(self._weights, self._offsets, strict=True)
            )
            bent[row] = np.rint(mixed)
        return bent.reshape(images.shape)


def is_inside(places: FloatArray, width: int, height: int) -> NDArray[np.bool_]:
    """Return (…) True where places (…, 2), column and row [px], lie in an image; False for NaN."""
    return np.all((places >= 0) & (places < (width, height)), axis=-1)


def boxes_of(instance: NDArray[np.uint8], count: int) -> NDArray[np.float32]:
    """Return tight boxes (K, N, 4) of the visible parts of instance masks (K, H, W) [px].

    Returns:
        x_min, y_min, x_max, y_max (exclusive); NaN for the background, which is label 0, and for invisible instances.
    """
    boxes = np.full((len(instance), count, 4), np.nan, dtype=np.float32)
    for row, mask in enumerate(instance):
        for label in np.unique(mask):
            if not 0 < label < count:
                continue
            seen = mask == label
            rows, columns = np.flatnonzero(seen.any(axis=1)), np.flatnonzero(seen.any(axis=0))
            boxes[row, label] = columns[0], rows[0], columns[-1] + 1, rows[-1] + 1
    return boxes
