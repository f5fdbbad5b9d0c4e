"""Check for surfaces that fold onto or intersect themselves, which coacd rebuilds from voxels with many faces."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nimbus.datagen.arrays import FloatArray, IndexArray
from nimbus.datagen.errors import InputError

_VOXELS = 50
"""Number of coacd's voxels in half of the longest side: coacd's default."""
_FACES_BY_AREA = 2.54
"""Number of faces of a rebuilt surface per voxel side covered; measured on a box that gave 152,144 faces."""
MOST_REMADE = 80_000
"""Largest number of faces of a rebuilt surface that is decomposed.

Measured: a cylinder through a torus (76,316 faces) takes 38 CPU-seconds. A box folded onto itself (152,144 faces)
took 30 s for each of more than nine rounds of cuts.
"""
_TOUCHING = 1e-9
"""Fraction of an edge or a face, and sine of an angle, below which values count as zero.

Touching counts as intersection, as in coacd.
"""
_AT_ONCE = 1 << 16
"""Number of pairs of faces compared at once."""


def check_folds(points: FloatArray, faces: IndexArray, path: Path, said_in: str) -> None:
    """Refuse a surface that folds onto or passes through itself, if coacd would rebuild it with too many faces.

    Args:
        points: (N, 3) corners of a closed surface [m].
        faces: (F, 3) indices of points.
        path: File of the mesh, for messages.
        said_in: File for the mesh's settings, for messages.

    Raises:
        InputError: The surface folds onto or intersects itself, and its rebuilt surface would be too large.
    """
    if remade_count(points, faces) <= MOST_REMADE:
        return
    count = count_full_edges(faces)
    what = f"folds onto itself: {count} edges have more than two faces"
    if not count:
        if not passes_through_itself(points, faces):
            return
        what = "passes through itself"
    instead = f"join its parts to one surface in the modeling tool, or write 'pieces: 1' in {said_in}"
    raise InputError(what, where=str(path), instead=instead)


def remade_count(points: FloatArray, faces: IndexArray) -> int:
    """Estimate the number of faces of a surface rebuilt from voxels."""
    a, b, c = (points[faces[:, corner]] for corner in range(3))
    area = np.linalg.norm(np.cross(b - a, c - a), axis=1).sum() / 2
    voxel = np.ptp(points, axis=0).max() / 2 / _VOXELS
    return int(_FACES_BY_AREA * area / voxel**2)


def count_full_edges(faces: IndexArray) -> int:
    """Count edges with more than two faces."""
    edges = np.sort(np.vstack([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]), axis=1)
    return int((np.unique(edges, axis=0, return_counts=True)[1] > 2).sum())


def passes_through_itself(points: FloatArray, faces: IndexArray) -> bool:
    """Return True if an edge intersects or touches a face, other than at a shared corner."""
    corners = points[faces]
    low, high = corners.min(axis=1), corners.max(axis=1)
    step = max(1, _AT_ONCE // len(faces))
    for begin in range(0, len(faces), step):
        rows = slice(begin, begin + step)
        one, other = np.nonzero(((low[rows, None] <= high) & (low <= high[rows, None])).all(axis=2))
        one += begin
        for start, end in ((0, 1), (1, 2), (2, 0)):
            ends = faces[one][:, [start, end]]
            apart = (ends[:, :, None] != faces[other][:, None, :]).all(axis=(1, 2))
            edge, face = one[apart], other[apart]
            if _goes_through(corners[edge, start], corners[edge, end], corners[face]).any():
                return True
    return False


def _goes_through(start: FloatArray, end: FloatArray, triangles: FloatArray) -> FloatArray:
    """Return (m,) flags, True where a segment intersects its triangle (Möller and Trumbore, 1997)."""
    a, along = triangles[:, 0], end - start
    ab, ac = triangles[:, 1] - a, triangles[:, 2] - a
    across = np.cross(along, ac)
    volume = np.einsum("ij,ij->i", ab, across)
    with np.errstate(divide="ignore", invalid="ignore"):
        u = np.einsum("ij,ij->i", start - a, across) / volume
        turned = np.cross(start - a, ab)
        v = np.einsum("ij,ij->i", along, turned) / volume
        t = np.einsum("ij,ij->i", ac, turned) / volume
        inside = np.minimum.reduce([u, v, 1 - u - v, t, 1 - t]) > -_TOUCHING
    sizes = [np.linalg.norm(side, axis=1) for side in (along, ab, ac)]
    return inside & (np.abs(volume) > _TOUCHING * np.prod(sizes, axis=0))
