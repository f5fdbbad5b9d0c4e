"""Contact geometry: a few convex pieces that fit a surface closely."""

from __future__ import annotations

import numpy as np

from nimbus.datagen.arrays import FloatArray, IndexArray
from nimbus.datagen.geometry.hulls import qhull

Piece = tuple[FloatArray, IndexArray]

MAX_VERTICES = 32


def convex_hull(points: FloatArray) -> Piece:
    """Return the convex hull of points; its faces are counter-clockwise from outside.

    Args:
        points: (n, 3) not in one plane.
    """
    hull = qhull(points)
    faces = hull.simplices.astype(np.int64)
    a, b, c = (points[faces[:, corner]] for corner in range(3))
    inward = np.einsum("ij,ij->i", np.cross(b - a, c - a), hull.equations[:, :3]) < 0
    faces[inward] = faces[inward][:, ::-1]
    used, index = np.unique(faces, return_inverse=True)
    return points[used], index.reshape(-1, 3).astype(np.int32)


def limited_hull(points: FloatArray, *, max_vertices: int = MAX_VERTICES) -> Piece:
    """Build a hull of few points; each next point is the one farthest outside the current hull.

    Args:
        points: (N, 3) not in one plane [m].
        max_vertices: Upper bound on the hull's vertices.

    Returns:
        (V, 3) points [m] and (F, 3) faces, counter-clockwise from outside.
    """
    corners = points[np.unique(qhull(points).simplices)]
    if len(corners) <= max_vertices:
        return convex_hull(corners)
    axes = np.vstack([np.eye(3), -np.eye(3), [[1, 1, 1], [-1, -1, 1], [1, -1, -1], [-1, 1, -1]]])
    chosen = list(dict.fromkeys(np.argmax(corners @ axes.T, axis=0).tolist()))
    while len(chosen) < max_vertices:
        planes = qhull(corners[chosen]).equations
        outside = (corners @ planes[:, :3].T + planes[:, 3]).max(axis=1)
        chosen.append(int(np.argmax(outside)))
    return convex_hull(corners[sorted(set(chosen))])


def pieces_of_rings(rings: FloatArray, *, tolerance: float, max_pieces: int) -> tuple[Piece, ...]:
    """Cut a stack of rings into the fewest convex pieces that follow it within a tolerance.

    Args:
        rings: (K, M, 3) outlines from one end to the other; points with the same index m correspond.
        tolerance: Largest distance of a ring's point from the straight line between two cuts [m].
        max_pieces: Upper bound on the pieces, even if the tolerance is then exceeded.
    """
    cost = _chord_errors(rings)
    cuts, error = _best_cuts(cost, 1)
    for count in range(2, max_pieces + 1):
        if error <= tolerance:
            break
        cuts, error = _best_cuts(cost, count)
    return tuple(convex_hull(np.vstack([rings[a], rings[b]])) for a, b in zip(cuts[:-1], cuts[1:], strict=True))


def _chord_errors(rings: FloatArray) -> FloatArray:
    """Return (K, K) errors: the largest distance of the rings between i and j from straight lines that join i and j."""
    count = len(rings)
    center = rings.mean(axis=1)
    along = np.r_[0.0, np.cumsum(np.linalg.norm(np.diff(center, axis=0), axis=1))]
    cost = np.zeros((count, count))
    for i in range(count - 2):
        ends, between = np.arange(i + 2, count)[:, None], np.arange(i + 1, count - 1)
        share = (along[between] - along[i]) / np.maximum(along[ends] - along[i], 1e-12)
        off = share[:, :, None, None] * (rings[i + 2 :] - rings[i])[:, None]
        off += rings[i]
        off -= rings[between]
        off *= off
        errors = (off[..., 0] + off[..., 1] + off[..., 2]).max(axis=2)
        cost[i, i + 2 :] = np.sqrt(np.where(between < ends, errors, 0.0).max(axis=1))
    return cost


def _best_cuts(cost: FloatArray, pieces: int) -> tuple[list[int], float]:
    """Return the cuts, including both ends, that minimize the largest error of any piece (dynamic programming)."""
    count = len(cost)
    best = np.full((pieces + 1, count), np.inf)
    before = np.zeros((pieces + 1, count), dtype=int)
    best[0, 0] = 0.0
    earlier = np.tri(count, k=-1, dtype=bool).T  # entry [row, column] is True if the row's cut is before the column's
    for used in range(1, pieces + 1):
        candidates = np.where(earlier, np.maximum(best[used - 1][:, None], cost), np.inf)
        before[used] = np.argmin(candidates, axis=0)
        best[used] = candidates.min(axis=0)
    used = int(np.argmin(best[1:, -1])) + 1
    cuts, error = [count - 1], float(best[used, -1])
    for step in range(used, 0, -1):
        cuts.insert(0, int(before[step, cuts[0]]))
    return cuts, error


def piece_triangles(pieces: tuple[Piece, ...]) -> tuple[FloatArray, IndexArray]:
    """Join all pieces into one mesh.

    Args:
        pieces: (V, 3) points [m] and (F, 3) faces of each.

    Returns:
        (N, 3) points [m] and (M, 3) faces of all pieces, in their order.
    """
    offsets = np.cumsum([0] + [len(vertices) for vertices, _ in pieces[:-1]])
    faces = [faces + offset for (_, faces), offset in zip(pieces, offsets, strict=True)]
    return np.vstack([vertices for vertices, _ in pieces]), np.vstack(faces).astype(np.int32)
