"""Silhouette areas: the number of pixels that an object would cover without occlusion."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.arrays import FloatArray

_DIRECTIONS = 32
"""Number of half-planes that bound a silhouette; with 32 the area of a round one is exact within 1 %."""
_NEAR = 0.01
"""Smallest depth [m]; nearer points, and points behind the camera, are moved to it."""

_angles = np.arange(_DIRECTIONS) * (2 * np.pi / _DIRECTIONS)
_normals = np.stack([np.cos(_angles), np.sin(_angles)])


def outline_points(vertices: NDArray[np.float32], *, count: int = 64) -> FloatArray:
    """Return at most ``count`` vertices (n, 3) near the convex hull: the extremes along spread directions."""
    # Directions on a golden spiral, which are spread evenly over the sphere.
    index = np.arange(count) + 0.5
    polar, turn = np.arccos(1 - 2 * index / count), np.pi * (1 + 5**0.5) * index
    directions = np.stack([np.sin(polar) * np.cos(turn), np.sin(polar) * np.sin(turn), np.cos(polar)])
    return vertices[np.unique(np.argmax(vertices @ directions, axis=0))].astype(np.float64)


def silhouette_areas(
    points: FloatArray, world_T_camera: FloatArray, intrinsics: FloatArray, *, width: int, height: int
) -> NDArray[np.float64]:
    """Return the areas (K,) inside the image of the convex outlines of points (K, n, 3) in the world frame [px].

    Args:
        points: Points from :func:`outline_points`, in the world frame of each step [m].
        world_T_camera: (K, 4, 4), OpenCV axes.
        intrinsics: (3, 3) pinhole matrix [px].
        width: Width of the image [px].
        height: Height of the image [px].
    """
    rotation, position = world_T_camera[:, :3, :3], world_T_camera[:, :3, 3]
    seen = (points - position[:, None]) @ rotation
    in_front = np.any(seen[..., 2] > _NEAR, axis=1)
    depth = np.maximum(seen[..., 2:], _NEAR)
    pixels = seen[..., :2] / depth * np.diag(intrinsics)[:2] + intrinsics[:2, 2]
    polygon = _outline(pixels)
    for axis, limit in ((0, width), (1, height)):
        # Sutherland-Hodgman, vectorized over K polygons.
        polygon = _clip(_clip(polygon, axis, 0.0, 1.0), axis, float(limit), -1.0)
    x, y = polygon[..., 0], polygon[..., 1]
    area = 0.5 * np.abs(np.sum(x * np.roll(y, -1, axis=-1) - y * np.roll(x, -1, axis=-1), axis=-1))
    return np.where(in_front, area, 0.0)


def _outline(pixels: FloatArray) -> FloatArray:
    """Return corners (K, D, 2) of the polygon that bounds points (K, n, 2) in D directions."""
    support = np.max(pixels @ _normals, axis=1)
    following, sine = np.roll(support, -1, axis=-1), np.sin(2 * np.pi / _DIRECTIONS)
    ahead = np.roll(_normals, -1, axis=1)
    x = (support * ahead[1] - following * _normals[1]) / sine
    y = (following * _normals[0] - support * ahead[0]) / sine
    return np.stack([x, y], axis=-1)


def _clip(polygon: FloatArray, axis: int, limit: float, sign: float) -> FloatArray:
    """Clip convex polygons (K, V, 2) at a line along an image axis; degenerate corners keep the shape of the arrays."""
    inside = sign * (polygon[..., axis] - limit)
    if np.all(inside >= 0):
        return polygon
    ahead, ahead_inside = np.roll(polygon, -1, axis=1), np.roll(inside, -1, axis=1)
    crossing = (inside < 0) != (ahead_inside < 0)
    share = np.where(crossing, inside / np.where(crossing, inside - ahead_inside, 1.0), 0.0)
    cut = polygon + share[..., None] * (ahead - polygon)
    first = np.where((inside >= 0)[..., None], polygon, cut)
    second = np.where(crossing[..., None], cut, first)
    # An edge that is entirely outside has no corner left; the previous corner inside is repeated in its place.
    corners = np.stack([first, second], axis=2).reshape(len(polygon), -1, 2)
    kept = np.stack([(inside >= 0) | crossing, crossing | (inside >= 0)], axis=2).reshape(len(polygon), -1)
    return _fill(corners, kept)


def _fill(corners: FloatArray, kept: NDArray[np.bool_]) -> FloatArray:
    """Replace discarded corners by the nearest kept one before them, around the polygon."""
    count = corners.shape[1]
    index = np.where(kept, np.arange(count), -1)
    last = np.max(index, axis=1, keepdims=True)
    index = np.maximum.accumulate(index, axis=1)
    index = np.where(index < 0, last, index)
    filled = np.take_along_axis(corners, np.maximum(index, 0)[..., None], axis=1)
    return np.where((last >= 0)[..., None], filled, 0.0)
