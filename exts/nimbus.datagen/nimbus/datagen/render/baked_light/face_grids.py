"""Grids of light samples on the faces of a mesh, as fine as each face is large."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.arrays import Float32Array, FloatArray, IntArray

_MOST_STEPS = 80
"""Largest number of steps along an edge; a floor of 8 m is sampled every 10 cm."""
_INSET = 0.02
"""Shift of samples toward the center of their face [m]; exactly at an edge, an adjoining face could block all rays."""
_MOST_INSET = 0.3
"""Largest shift of a sample, as a fraction of the way to the center of its face."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FaceGrid:
    """Grids of F faces: values at points whose barycentric coordinates are multiples of one over ``steps``.

    Row ``i`` of a grid, at barycentric coordinate ``i / steps`` of the first corner, has ``steps - i + 1`` points.
    """

    steps: NDArray[np.int32]
    """(F,) number of parts of each edge."""
    start: NDArray[np.int32]
    """(F,) first point of each face in ``samples``."""
    samples: NDArray[np.int32]
    """(N,) index of the sample at each point; points of several faces may share one."""

    def face_range(self, start: int, stop: int) -> FaceGrid:
        """Return the grids of some of the faces."""
        return FaceGrid(steps=self.steps[start:stop], start=self.start[start:stop], samples=self.samples)


def place_grids(
    corners: FloatArray, normals: FloatArray, spacing: FloatArray
) -> tuple[FaceGrid, Float32Array, Float32Array]:
    """Place grids on faces, and find the samples that they need.

    Args:
        corners: (F, 3, 3) corners of the faces [m].
        normals: (F, 3, 3) unit normals at the corners.
        spacing: (F,) distance of neighboring points along the longest edge [m].

    Returns:
        The grids, and positions (S, 3) [m] and unit normals (S, 3) of the samples.
    """
    longest = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=-1).max(axis=1)
    steps = np.clip(np.ceil(longest / spacing), 1, _MOST_STEPS).astype(np.int32)
    counts = (steps + 1) * (steps + 2) // 2
    start = np.cumsum([0, *counts[:-1]]).astype(np.int32)
    exact, places, turned = (np.empty((int(counts.sum()), 3)) for _ in range(3))
    for size in np.unique(steps):
        chosen = np.flatnonzero(steps == size)
        shares = grid_shares(int(size))
        rows = start[chosen, None] + np.arange(len(shares))
        points = np.einsum("nk,fkd->fnd", shares, corners[chosen])
        inward = corners[chosen].mean(axis=1, keepdims=True) - points
        distance = np.linalg.norm(inward, axis=-1, keepdims=True)
        exact[rows], places[rows] = (
            points,
            points + inward * np.minimum(_MOST_INSET, _INSET / np.maximum(distance, 1e-9)),
        )
        turned[rows] = np.einsum("nk,fkd->fnd", shares, normals[chosen])
    turned /= np.maximum(np.linalg.norm(turned, axis=1, keepdims=True), 1e-9)
    # Points are merged by their exact positions: the inset ones of adjoining faces differ.
    samples, first = _distinct(exact, turned)
    grid = FaceGrid(steps=steps, start=start, samples=samples)
    return grid, places[first].astype(np.float32), turned[first].astype(np.float32)


def grid_shares(steps: int) -> FloatArray:
    """Return (n, 3) barycentric coordinates of the points of a grid, in their order."""
    first, second = np.array([(i, j) for i in range(steps + 1) for j in range(steps - i + 1)]).T
    return np.column_stack([first, second, steps - first - second]) / steps


def _distinct(places: FloatArray, normals: FloatArray) -> tuple[NDArray[np.int32], IntArray]:
    """Merge points within 2 mm of each other with equal normals.

    Returns:
        The sample of each point, and one point of each sample.
    """
    packed = np.zeros(len(places), dtype=np.int64)
    for column in np.column_stack([np.rint(places * 500), np.rint(normals * 8)]).astype(np.int64).T:
        packed = packed * 1_000_003 + column  # a hash that wraps around; collisions are improbable
    _, first, number = np.unique(packed, return_index=True, return_inverse=True)
    return number.ravel().astype(np.int32), first
