"""Mesh decimation: edges collapse to points where the planes around them allow it.

Quadric error metrics (Garland and Heckbert, SIGGRAPH 1997) with many collapses at once: each round collapses all edges
that are cheaper than their neighbors.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.arrays import FloatArray, IndexArray
from nimbus.datagen.progress import tick

_ROUNDS = 300
_TURN = 0.6
"""Smallest cosine of the angle by which a face may rotate in one collapse."""
_PLANES = 12.0
"""Largest cost of a collapse, as a multiple of the squared tolerance; a cost sums over about twelve planes."""
_FREE = np.iinfo(np.int64).max


def decimate(points: NDArray[np.floating], faces: IndexArray, *, tolerance: float) -> tuple[FloatArray, IndexArray]:
    """Return a simplified surface within about ``tolerance`` of the planes of the original.

    Args:
        points: (n, 3) points without duplicates [m].
        faces: (m, 3) triangles of the points.
        tolerance: Largest distance between the two surfaces [m].
    """
    points = points.astype(np.float64)
    faces = faces[_proper(faces)]
    quadrics = _quadrics(points, faces)
    refused = np.zeros(0, dtype=np.int64)
    for _ in range(_ROUNDS):
        tick()
        edges = _edges(faces)[0]
        names = edges[:, 0] * len(points) + edges[:, 1]
        edges = edges[~np.isin(names, refused)]
        sums = quadrics[edges].sum(axis=1)
        places = _best_places(sums, points[edges].mean(axis=1))
        costs = _errors(sums, places)
        cheap = np.flatnonzero(costs < _PLANES * tolerance**2)
        # In flat areas all costs are zero, so ties are broken by an order that is unrelated to the edges' positions.
        turns = (edges[cheap] @ (2654435761, 2246822519)) % 65536 / 65536
        costs = costs[cheap] + 0.01 * tolerance**2 * turns
        chosen = cheap[_cheapest_around(edges[cheap], costs, faces, len(points))]
        if not len(chosen):
            break
        edges, places, sums = edges[chosen], places[chosen], sums[chosen]
        turned = _turned(points, faces, edges, places)
        refused = np.concatenate([refused, edges[turned, 0] * len(points) + edges[turned, 1]])
        edges, places, sums = edges[~turned], places[~turned], sums[~turned]
        points[edges[:, 0]], quadrics[edges[:, 0]] = places, sums
        becomes = np.arange(len(points))
        becomes[edges[:, 1]] = edges[:, 0]
        faces = becomes[faces].astype(np.int32)
        faces = faces[_proper(faces)]
    used, numbers = np.unique(faces, return_inverse=True)
    return points[used], numbers.reshape(-1, 3).astype(np.int32)


def _proper(faces: IndexArray) -> NDArray[np.bool_]:
    a, b, c = faces.T
    return (a != b) & (b != c) & (c != a)


def _edges(faces: IndexArray) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the unique edges (e, 2), the index of the first (face, side) of each, and its number of faces."""
    sides = np.stack([faces, np.roll(faces, -1, axis=1)], axis=2).reshape(-1, 2).astype(np.int64)
    count = int(faces.max(initial=0)) + 1
    names = sides.min(axis=1) * count + sides.max(axis=1)
    names, first, counts = np.unique(names, return_index=True, return_counts=True)
    return np.stack([names // count, names % count], axis=1), first, counts


def _normals(points: FloatArray, faces: IndexArray) -> FloatArray:
    corners = points[faces]
    return np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])


def _quadrics(points: FloatArray, faces: IndexArray) -> FloatArray:
    """Return quadrics (n, 4, 4): the sums of squared distances to the planes around each point.

    The planes are those of the faces, and planes perpendicular to them at open edges.
    """
    normals = _normals(points, faces)
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-20)
    quadrics = np.zeros((len(points), 4, 4))
    _add_planes(quadrics, points, faces, normals)
    edges, first, counts = _edges(faces)
    border = counts != 2
    along = points[edges[border, 1]] - points[edges[border, 0]]
    across = np.cross(along, normals[first[border] // 3])
    across /= np.maximum(np.linalg.norm(across, axis=1, keepdims=True), 1e-20)
    _add_planes(quadrics, points, edges[border], across)
    return quadrics


def _add_planes(quadrics: FloatArray, points: FloatArray, members: NDArray[np.integer], normals: FloatArray) -> None:
    offset = -np.sum(normals * points[members[:, 0]], axis=1, keepdims=True)
    planes = np.concatenate([normals, offset], axis=1)
    products = planes[:, :, None] * planes[:, None]
    for column in members.T:
        np.add.at(quadrics, column, products)


def _best_places(quadrics: FloatArray, middles: FloatArray) -> FloatArray:
    """Return the positions of least error; if these are ill-defined, positions near the midpoints."""
    matrix, vector = quadrics[:, :3, :3], quadrics[:, :3, 3]
    weight = 1e-3 * np.trace(matrix, axis1=1, axis2=2)[:, None] + 1e-12
    held = matrix + weight[..., None] * np.eye(3)
    return np.linalg.solve(held, (weight * middles - vector)[..., None])[..., 0]


def _errors(quadrics: FloatArray, places: FloatArray) -> FloatArray:
    full = np.concatenate([places, np.ones((len(places), 1))], axis=1)
    return np.einsum("ni,nij,nj->n", full, quadrics, full)


def _cheapest_around(edges: NDArray[np.int64], costs: FloatArray, faces: IndexArray, count: int) -> NDArray[np.bool_]:
    """Return a mask of the edges that are cheaper than all others at their adjacent faces; they share no face."""
    rank = np.empty(len(edges), dtype=np.int64)
    rank[np.argsort(costs, kind="stable")] = np.arange(len(edges))
    lowest = np.full(count, _FREE)
    np.minimum.at(lowest, edges.ravel(), np.repeat(rank, 2))
    around = np.full(count, _FREE)
    np.minimum.at(around, faces.ravel(), np.repeat(lowest[faces].min(axis=1), 3))
    return (rank[:, None] == around[edges]).all(axis=1)


def _turned(points: FloatArray, faces: IndexArray, edges: NDArray[np.int64], places: FloatArray) -> NDArray[np.bool_]:
    """Return a mask of the edges whose collapse would rotate a face too far, or join parts that already touch."""
    owner = np.full(len(points), -1)
    owner[edges] = np.arange(len(edges))[:, None]
    moved = points.copy()
    moved[edges] = places[:, None]
    of_edge = owner[faces]
    edge, touches = of_edge.max(axis=1), (of_edge >= 0).sum(axis=1)
    stays = touches == 1
    before, after = _normals(points, faces[stays]), _normals(moved, faces[stays])
    length = np.linalg.norm(before, axis=1) * np.linalg.norm(after, axis=1)
    bad = np.sum(before * after, axis=1) < _TURN * length
    bad |= np.linalg.norm(after, axis=1) < 1e-12
    found = np.zeros(len(edges), dtype=bool)
    found[edge[stays][bad]] = True
    return found
