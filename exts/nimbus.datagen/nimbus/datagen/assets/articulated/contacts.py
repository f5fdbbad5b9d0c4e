"""Contact geometry of a link: the convex solids of the source, or convex pieces of the visual mesh."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.spatial import QhullError

from nimbus.datagen.arrays import FloatArray, IndexArray
from nimbus.datagen.errors import InputError
from nimbus.datagen.geometry.hulls import qhull
from nimbus.datagen.objects.imported.mesh_repair import close_mesh
from nimbus.datagen.objects.imported.solid import cut_contact
from nimbus.datagen.objects.imported.surface import ImportedSurface
from nimbus.datagen.objects.shapes.contact import Piece, limited_hull

_SMALL = 0.02
"""Size below which a solid is replaced by its hull [m]."""
_SCRAP = 1e-9
"""Volume below which a convex piece is omitted [m³]."""
_CONVEX = 0.85
"""Smallest ratio of a solid's volume to its hull's volume at which it is kept as one piece."""


def contact_pieces(
    seen: list[ImportedSurface], touched: list[ImportedSurface], *, most: int, path: Path
) -> list[Piece]:
    """Make the convex pieces of one link.

    Args:
        seen: Visual surfaces [m].
        touched: Convex contact solids of the source [m].
        most: Largest number of pieces per decomposed surface.
        path: Path of the asset, for messages.
    """
    if touched:
        pieces = [piece for surface in touched if (piece := _hull(surface))]
        if pieces:
            return pieces
    return [piece for surface in seen for piece in _cut(surface, most, path)]


def _hull(surface: ImportedSurface) -> Piece | None:
    try:
        points = surface.corners.reshape(-1, 3)
        return limited_hull(np.unique(np.round(points, 7), axis=0)) if qhull(points).volume > _SCRAP else None
    except (QhullError, ValueError):
        return None


def _cut(surface: ImportedSurface, most: int, path: Path) -> list[Piece]:
    points, faces = surface.points()
    hull = _hull(surface)
    if hull is None:
        return []
    if np.ptp(points, axis=0).max() < _SMALL:
        return [hull]
    try:
        closed = close_mesh(points, faces, path)
        if _volume(*closed) > _CONVEX * qhull(points).volume:
            return [hull]
        found = cut_contact(*closed, most=most, rooms=(), path=path, said_in="asset.yaml").pieces
        return [piece for piece in found if qhull(piece[0]).volume > _SCRAP]
    except (InputError, QhullError, ValueError):
        return _shells(points, faces) or [hull]


def _shells(points: FloatArray, faces: IndexArray) -> list[Piece]:
    """Return the hulls of the connected components of a surface that cannot be decomposed."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    edges = np.vstack([faces[:, [0, 1]], faces[:, [1, 2]]])
    graph = coo_array((np.ones(len(edges)), edges.T), shape=(len(points), len(points)))
    label = connected_components(graph, directed=False)[1]
    pieces = []
    for name in np.unique(label[faces[:, 0]])[:32]:
        try:
            piece = limited_hull(points[label == name])
        except (QhullError, ValueError):
            continue
        pieces += [piece] if qhull(piece[0]).volume > _SCRAP else []
    return pieces


def _volume(points: FloatArray, faces: IndexArray) -> float:
    a, b, c = (points[faces[:, corner]] for corner in range(3))
    return abs(float(np.einsum("ij,ij->", a, np.cross(b, c)))) / 6
