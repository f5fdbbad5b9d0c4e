"""Points on triangles: at the centers of a grid's pixels, and evenly distributed over a surface."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nimbus.datagen.arrays import BoolArray, FloatArray, IntArray
from nimbus.datagen.random_streams import generator

_AT_ONCE = 1 << 20
"""Number of pixels, or of rows of faces, that are processed together; they take 0.2 GB."""
_LARGER = 1.0 + 1e-6
"""Enlargement of faces, about their centers, in the search for the pixels that they may cover."""
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
    front = _Front.empty(width * height) if triangles.shape[2] == 3 else None
    found = [(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros((0, 3)))]
    for face, column, row in _near_pixels(triangles, width, height, both_sides):
        middles = np.column_stack([column, row]).astype(np.float64) + 0.5
        weights, inside = _weights(triangles, face, middles, both_sides)
        face, pixel, weights = face[inside], (row * width + column)[inside], weights[inside]
        if front:
            front.add(face, pixel, weights, np.einsum("ij,ij->i", weights, triangles[face, :, 2]))
        else:
            found.append((face, pixel, weights))
    if front:
        return front.coverage()
    face, pixel, weights = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
    return PixelCoverage(face=face, pixel=pixel, weights=weights)


def estimate_covered(triangles: FloatArray, width: int, height: int) -> float:
    """Estimate the number of pairs of a counter-clockwise face and a pixel that it covers, hidden ones included.

    Args:
        triangles: (m, 3, 2) or (m, 3, 3), as for :func:`cover_pixels`.
        width: Width of the grid [px].
        height: Height of the grid [px].
    """
    size = np.array([width, height])
    low, high = (np.clip(ends, 0, size) for ends in (triangles[..., :2].min(axis=1), triangles[..., :2].max(axis=1)))
    extent, double = high - low, _double_areas(triangles)
    covered = np.minimum(double / 2, extent.prod(axis=1)) + extent.sum(axis=1) + 1.0
    return float(covered[double >= _EDGE].sum())


@dataclass(kw_only=True)
class _Front:
    """Front face of each pixel among the faces added so far; its size depends on the grid alone."""

    depth: FloatArray
    face: IntArray
    weights: FloatArray

    @classmethod
    def empty(cls, count: int) -> _Front:
        """Return no faces for a number of pixels."""
        return cls(depth=np.full(count, -np.inf), face=np.full(count, -1), weights=np.zeros((count, 3)))

    def add(self, face: IntArray, pixel: IntArray, weights: FloatArray, depth: FloatArray) -> None:
        """Keep each pixel's front face; among faces of equal depth, the last one."""
        order = np.lexsort((depth, pixel))
        last = order[np.flatnonzero(np.r_[np.diff(pixel[order]) > 0, True])] if len(order) else order
        last = last[depth[last] >= self.depth[pixel[last]]]
        there = pixel[last]
        self.depth[there], self.face[there], self.weights[there] = depth[last], face[last], weights[last]

    def coverage(self) -> PixelCoverage:
        """Return the pixels that a face covers."""
        pixel = np.flatnonzero(self.face >= 0)
        return PixelCoverage(face=self.face[pixel], pixel=pixel, weights=self.weights[pixel])


def _near_pixels(
    triangles: FloatArray, width: int, height: int, both_sides: bool
) -> Iterator[tuple[IntArray, IntArray, IntArray]]:
    """Yield face, column and row of the pixels that faces may cover, in groups that fit into memory.

    Each face has an interval of columns in each of its rows. The bounding box of a long, narrow face would have many
    times its pixels.
    """
    double = _double_areas(triangles)
    chosen = np.flatnonzero((np.abs(double) if both_sides else double) >= _EDGE)
    corners = triangles[chosen, :, :2]
    middle = corners.mean(axis=1, keepdims=True)
    corners = middle + (corners - middle) * _LARGER
    low = np.clip(np.ceil(corners[..., 1].min(axis=1) - 0.5), 0, height).astype(int)
    high = np.clip(np.floor(corners[..., 1].max(axis=1) - 0.5), -1, height - 1).astype(int)
    rows = np.maximum(high - low + 1, 0)
    for start, end in _groups(rows):
        owner, step = _expand(rows[start:end])
        owner += start
        row = low[owner] + step
        first, last = _columns(corners[owner], row + 0.5, width)
        counts = np.maximum(last - first + 1, 0)
        for begin, stop in _groups(counts):
            part, step = _expand(counts[begin:stop])
            part += begin
            yield chosen[owner[part]], first[part] + step, row[part]


def _columns(corners: FloatArray, y: FloatArray, width: int) -> tuple[IntArray, IntArray]:
    """Return the first and last columns (k,) whose centers may lie in triangles (k, 3, 2) at heights y (k,)."""
    left, right = np.full(len(y), np.inf), np.full(len(y), -np.inf)
    for one, two in ((0, 1), (1, 2), (2, 0)):
        start, end = corners[:, one], corners[:, two]
        rise = end[:, 1] - start[:, 1]
        share = np.clip((y - start[:, 1]) / np.where(rise == 0, 1.0, rise), 0.0, 1.0)
        is_met = (np.minimum(start[:, 1], end[:, 1]) <= y) & (y <= np.maximum(start[:, 1], end[:, 1])) & (rise != 0)
        x = start[:, 0] + share * (end[:, 0] - start[:, 0])
        left, right = np.where(is_met, np.minimum(left, x), left), np.where(is_met, np.maximum(right, x), right)
    first = np.clip(np.ceil(np.nan_to_num(left, posinf=width) - 0.51), 0, width).astype(int)
    last = np.clip(np.floor(np.nan_to_num(right, neginf=-1.0) - 0.49), -1, width - 1).astype(int)
    return first, last


def _groups(counts: IntArray) -> Iterator[tuple[int, int]]:
    """Yield the ends of groups of consecutive entries with about the same sum."""
    group = np.cumsum(counts) // _AT_ONCE
    starts = np.flatnonzero(np.r_[True, np.diff(group) > 0]).tolist() if len(counts) else []
    yield from itertools.pairwise([*starts, len(counts)])


def _expand(counts: IntArray) -> tuple[IntArray, IntArray]:
    """Return each index repeated as often as its count, and the number of each repetition."""
    owner = np.repeat(np.arange(len(counts)), counts)
    return owner, np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)


def _double_areas(triangles: FloatArray) -> FloatArray:
    """Return twice the area (m,) of triangles, negative for clockwise ones [px²]."""
    a, b, c = (triangles[:, corner, :2] for corner in range(3))
    return _cross(b - a, c - a)


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
