"""Division of meshes into pieces of neighboring faces, for culling by the box around each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.arrays import IntArray
from nimbus.datagen.meshes.triangles import Triangles

_MOST_PIECES, _FACES_OF_A_PIECE = 128, 16
"""Largest number of pieces of a mesh, and smallest number of faces of a piece."""


@dataclass(frozen=True, kw_only=True, eq=False)
class MeshPieces:
    """P pieces of a mesh with F faces and V vertices; a vertex of several pieces is repeated in each."""

    boxes: NDArray[np.float64]
    """(P, 2, 3) lower and upper corners [m]."""
    faces: NDArray[np.int32]
    """(F,) numbers of the faces in the mesh, piece after piece; the other arrays follow this order."""
    normals: NDArray[np.float32]
    """(F, 3) unit normals of the faces."""
    outward: NDArray[np.float32]
    """(F, 3) normals of the faces of closed surfaces; zero for others."""
    face_counts: NDArray[np.int64]
    """(P,) number of faces of each piece."""
    points: NDArray[np.float32]
    """(V, 3) vertices, piece after piece [m]."""
    point_counts: NDArray[np.int64]
    """(P,) number of vertices of each piece."""
    corners: NDArray[np.int32]
    """(F, 3) rows in ``points`` of the corners of each face."""


@lru_cache(maxsize=512)
def cut(triangles: Triangles) -> MeshPieces:
    """Halve a mesh along its longest sides until there are enough pieces."""
    places, corners = triangles.corners
    middles = triangles.vertices[triangles.faces].astype(np.float64).mean(axis=1)
    pieces = [np.arange(len(corners))]
    while len(pieces) < _MOST_PIECES and len(pieces[0]) > _FACES_OF_A_PIECE:
        halves = [half for piece in pieces for half in _halved(piece, middles)]
        pieces = sorted(halves, key=len, reverse=True)
    piece_of_face = np.empty(len(corners), dtype=np.int64)
    for number, piece in enumerate(pieces):
        piece_of_face[piece] = number
    keys, rows = np.unique(piece_of_face[:, None] * len(places) + corners, return_inverse=True)
    order, outward = np.concatenate(pieces), outward_normals(places.astype(np.float64), corners)
    edges = [places[corners[piece]].astype(np.float64) for piece in pieces]
    return MeshPieces(
        boxes=np.stack([[corner.min(axis=(0, 1)), corner.max(axis=(0, 1))] for corner in edges]),
        faces=order.astype(np.int32),
        normals=_unit_normals(places.astype(np.float64)[corners[order]]),
        outward=outward[order].astype(np.float32),
        face_counts=np.array([len(piece) for piece in pieces]),
        points=places[keys % len(places)],
        point_counts=np.bincount(keys // len(places), minlength=len(pieces)),
        corners=rows.reshape(-1, 3)[order].astype(np.int32),
    )


def _unit_normals(corners: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return unit normals (F, 3) of faces (F, 3, 3) [m]; zero for faces without area."""
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    length = np.linalg.norm(normals, axis=1, keepdims=True)
    return np.divide(normals, length, out=np.zeros_like(normals), where=length > 0).astype(np.float32)


def outward_normals(places: NDArray[np.float64], corners: NDArray[np.int32]) -> NDArray[np.float64]:
    """Return normals (F, 3) that point out of closed surfaces; zero for faces of open ones, whose backs are visible.

    Args:
        places: (n, 3) vertices [m].
        corners: (F, 3) vertices of the faces.
    """
    start, end = corners.ravel().astype(np.int64), np.roll(corners, -1, axis=1).ravel().astype(np.int64)
    keys, reverse = start * len(places) + end, end * len(places) + start
    order = np.argsort(keys, kind="stable")
    place = np.minimum(np.searchsorted(keys[order], reverse), len(keys) - 1)
    _, number, uses = np.unique(keys, return_inverse=True, return_counts=True)
    # An edge of a closed surface is used once in each direction. Edges of three faces, as where two solids touch, count
    # as open.
    paired = (keys[order][place] == reverse) & (uses[number] == 1) & (uses[number][order][place] == 1)
    face, neighbour = np.repeat(np.arange(len(corners)), 3), order[place] // 3
    count, surface = len(corners), _surfaces(len(corners), face[paired], neighbour[paired])
    closed = np.bincount(surface, ~paired.reshape(-1, 3).all(axis=1), count) == 0
    a, b, c = np.moveaxis(places[corners], 1, 0)
    normals = np.cross(b - a, c - a)
    # This is six times the signed volume (divergence theorem); its sign shows if faces are wound outward.
    volume = np.bincount(surface, np.sum(a * normals, axis=1), count)
    return normals * (np.sign(volume) * closed)[surface][:, None]


def _halved(piece: NDArray[np.int64], middles: NDArray[np.float64]) -> tuple[NDArray[np.int64], ...]:
    middle = middles[piece]
    along = middle[:, np.argmax(np.ptp(middle, axis=0))]
    low = along <= 0.5 * (along.min() + along.max())
    return (piece[low], piece[~low]) if low.any() and not low.all() else (piece,)


def _surfaces(count: int, face: IntArray, neighbour: IntArray) -> IntArray:
    """Return the surface (F,) of each face: the lowest face connected to it by edges; links go both ways."""
    found = np.arange(count)
    while True:
        lower = found.copy()
        np.minimum.at(lower, face, found[neighbour])
        # Pointer jumping halves the distance to the lowest face, so that long strips need few rounds.
        lower = lower[lower]
        if np.array_equal(lower, found):
            return found
        found = lower
