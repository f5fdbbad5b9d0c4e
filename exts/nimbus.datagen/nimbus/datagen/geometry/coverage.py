"""Points on triangles: at the centers of a grid's pixels, and evenly distributed over a surface."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nimbus.datagen.arrays import BoolArray, FloatArray, IntArray
from nimbus.datagen.random_streams import generator

_AT_ONCE = 1 << 20
"""Number of pixels in the boxes of a group of faces that are processed together; they take 0.2 GB."""
_EDGE = 1e-9
"""Tolerance of a barycentric weight for a pixel's center on the edge of a face."""


@dataclass(frozen=True, kw_only=True)
class PixelCoverage:
    """Pairs of a face and a pixel whose center it covers."""

    face: IntArray
    """(k,) index of the face."""
    pixel: IntArray
    """(k,) row * width + column; with depths, each pixel occurs once, with the front face."""
    weights: FloatArray
    """(k, 3) barycentric weights of the face's corners."""


def cover_pixels(triangles: FloatArray, width: int, height: int, *, both_sides: bool = False) -> PixelCoverage:
    """Find the faces that cover the centers of pixels.

    Args:
        triangles: (m, 3, 2) columns and rows [px], or (m, 3, 3) with a third value that is largest in front.
        width: Width of the grid [px].
        height: Height of the grid [px].
        both_sides: True to include clockwise faces.
    """
    limits = np.array([width, height]) - 1
    low = np.clip(np.floor(triangles[..., :2].min(axis=1) - 0.5).astype(int), 0, limits)
    high = np.clip(np.ceil(triangles[..., :2].max(axis=1) + 0.5).astype(int), 0, limits)
    extent = high - low + 1
    # The boxes of faces are expanded in groups, because together the boxes of a large mesh would not fit into memory.
    group = np.cumsum(extent.prod(axis=1)) // _AT_ONCE
    starts = np.flatnonzero(np.r_[True, np.diff(group) > 0]) if len(group) else group
    found = []
    for start, end in zip(starts, [*starts[1:], len(group)], strict=True):
        face, column, row = _boxes(np.arange(start, end), low, extent)
        middles = np.column_stack([column, row]).astype(np.float64) + 0.5
        weights, inside = _weights(triangles, face, middles, both_sides)
        found.append((face[inside], (row * width + column)[inside], weights[inside]))
    if not found:
        empty = np.zeros(0, dtype=np.int64)
        return PixelCoverage(face=empty, pixel=empty, weights=np.zeros((0, 3)))
    face, pixel, weights = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
    if triangles.shape[2] == 3:
        depth = np.einsum("ij,ij->i", weights, triangles[face, :, 2])
        # Sorted by pixel, then by depth: the last entry of each pixel is the front one.
        order = np.lexsort((depth, pixel))
        front = order[np.flatnonzero(np.r_[np.diff(pixel[order]) > 0, True])] if len(order) else order
        face, pixel, weights = face[front], pixel[front], weights[front]
    return PixelCoverage(face=face, pixel=pixel, weights=weights)


def _boxes(faces: IntArray, low: IntArray, extent: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return face, column and row of every pixel in the boxes around some faces."""
    counts = extent[faces].prod(axis=1)
    face = np.repeat(faces, counts)
    step = np.arange(len(face)) - np.repeat(np.cumsum(counts) - counts, counts)
    return face, low[face, 0] + step % extent[face, 0], low[face, 1] + step // extent[face, 0]


def _weights(
    triangles: FloatArray, face: IntArray, places: FloatArray, both_sides: bool
) -> tuple[FloatArray, BoolArray]:
    """Return the barycentric weights (k, 3) of points (k, 2) in faces, and flags (k,), True if the point is inside."""
    a, b, c = (triangles[:, corner, :2] for corner in range(3))
    double = _cross(b - a, c - a)
    # A face without area covers nothing.
    safe = np.where(np.abs(double) < _EDGE, np.inf, double)[face]
    away = places - a[face]
    second, third = _cross(away, (c - a)[face]) / safe, _cross((b - a)[face], away) / safe
    weights = np.column_stack([1 - second - third, second, third])
    is_seen = np.isfinite(safe) & (both_sides | (safe > 0))
    return weights, is_seen & (weights >= -_EDGE).all(axis=1)


def _cross(one: FloatArray, two: FloatArray) -> FloatArray:
    return one[..., 0] * two[..., 1] - one[..., 1] * two[..., 0]


def sample_surface(corners: FloatArray, count: int) -> tuple[FloatArray, IntArray]:
    """Distribute points over triangles; equal arguments give equal points.

    Args:
        corners: (m, 3, 3) [m].
        count: Number of points.

    Returns:
        Points (count, 3) [m], and the index (count,) of each point's face.
    """
    a, b, c = (corners[:, corner] for corner in range(3))
    share = np.cumsum(np.linalg.norm(np.cross(b - a, c - a), axis=1))
    rng = generator(0, "geometry", "surface")
    # One draw in each of ``count`` equal areas of the surface: stratified points are more even than independent ones.
    drawn = (np.arange(count) + rng.uniform(size=count)) / count * share[-1]
    face = np.minimum(np.searchsorted(share, drawn), len(corners) - 1)
    u, v = rng.uniform(size=(2, count, 1))
    # The upper half of the unit square is folded onto the lower half, so that points are uniform over the triangle.
    u, v = np.where(u + v > 1, 1 - u, u), np.where(u + v > 1, 1 - v, v)
    return a[face] + u * (b - a)[face] + v * (c - a)[face], face
