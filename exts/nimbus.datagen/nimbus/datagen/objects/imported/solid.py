"""Contact geometry of an imported solid: convex pieces that leave its cavities open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import QhullError

from nimbus.datagen.arrays import FloatArray, IndexArray
from nimbus.datagen.geometry.hulls import qhull
from nimbus.datagen.objects.imported.folds import check_folds
from nimbus.datagen.objects.imported.looks import reduce_faces
from nimbus.datagen.objects.imported.rooms import Interior
from nimbus.datagen.objects.shapes.contact import Piece, limited_hull
from nimbus.datagen.random_streams import generator

_CONVEX = 0.93
"""Fraction of its hull's volume above which a solid is a single piece; scans of boxes fill 0.937."""


class _Fineness(NamedTuple):
    """Settings of coacd."""

    threshold: float
    """Largest fraction of a piece's volume that its hull may add."""
    iterations: int
    """Number of steps of coacd's search."""
    pieces: int
    """Largest number of pieces."""
    preprocess: str
    """``auto`` rebuilds surfaces that are not manifold from voxels, which closes thin gaps; ``off`` does not."""


_CLOSED, _OPEN = _Fineness(0.04, 20, 16, "auto"), _Fineness(0.03, 20, 48, "off")
"""Settings for solids without cavities, and for containers; coarse pieces would turn thin walls into wedges."""
_MOST_GROWTH, _MOST_OPEN_GROWTH, _MOST_FILLED = 1.3, 2.0, 0.01
"""Limits of the first decomposition: growth of a solid, growth of a container, filled fraction of its cavities.

Beyond a limit, a finer decomposition is tried.
"""
_FACES = 3000
"""Approximate number of triangles of the decomposed mesh."""
_MOST_SHELLS = 12
"""Largest number of shells that are decomposed separately; a surface with more shells stays whole."""
_SMALLEST_SHELL = 2e-3
"""Fraction of the whole volume below which a shell is dropped if it lies within the hull of a larger shell."""
_PROBES = 4000
"""Number of sample points in each cavity."""


@dataclass(frozen=True, kw_only=True)
class ContactSolid:
    """Convex pieces, and how much they deviate from the solid."""

    pieces: tuple[Piece, ...]
    growth: float
    """Ratio of the total volume of the pieces (overlaps count twice) to the volume of the solid."""
    filled: float
    """Fraction of the cavities that pieces fill."""


def cut_contact(
    points: FloatArray, faces: IndexArray, *, most: int, rooms: Sequence[Interior], path: Path, said_in: str
) -> ContactSolid:
    """Decompose a closed surface into convex pieces.

    Args:
        points: (n, 3) points of the surface [m].
        faces: (m, 3) counter-clockwise from outside.
        most: Largest number of pieces; containers may have three times as many, up to 48.
        rooms: Cavities that must stay free.
        path: File of the mesh, for errors.
        said_in: File for the mesh's settings, for errors.

    Raises:
        InputError: The surface folds onto itself and is too large for coacd to rebuild.
    """
    points, faces = reduce_faces(points, faces, _FACES)
    volume = measure_volume(points, faces)
    if most == 1 or (not rooms and volume > _CONVEX * qhull(points).volume):
        hull = limited_hull(points)
        return ContactSolid(pieces=(hull,), growth=measure_volume(*hull) / volume, filled=_filled([hull], rooms))
    shells, kept = _shells(points, faces), None
    fineness = (_OPEN if rooms else _CLOSED)._replace(pieces=min(_OPEN.pieces, 3 * most) if rooms else most)
    for _ in range(2):
        pieces: list[Piece] = []
        for shell, share in zip(shells, _share_out(fineness.pieces, shells), strict=True):
            pieces += _cut(*shell, fineness._replace(pieces=share), path, said_in)
        growth = sum(measure_volume(*piece) for piece in pieces) / volume
        found = ContactSolid(pieces=tuple(pieces), growth=growth, filled=_filled(pieces, rooms))
        if kept is None or (found.filled, found.growth) < (kept.filled, kept.growth):
            kept = found
        if found.filled <= _MOST_FILLED and growth <= (_MOST_OPEN_GROWTH if rooms else _MOST_GROWTH):
            break
        fineness = fineness._replace(threshold=fineness.threshold / 2, pieces=2 * fineness.pieces)
    assert kept is not None
    return kept


def measure_volume(points: FloatArray, faces: IndexArray) -> float:
    """Return the volume of a closed surface [m³]."""
    a, b, c = (points[faces[:, corner]] for corner in range(3))
    return abs(float(np.einsum("ij,ij->", a, np.cross(b, c)))) / 6


def _shells(points: FloatArray, faces: IndexArray) -> list[tuple[FloatArray, IndexArray]]:
    """Split a surface into connected shells; it stays whole if a shell is inside another or there are too many."""
    count = len(points)
    edges = np.vstack([faces[:, [0, 1]], faces[:, [1, 2]]])
    graph = coo_array((np.ones(len(edges)), edges.T), shape=(count, count))
    label = connected_components(graph, directed=False)[1][faces[:, 0]]
    parts = [_compact(points, faces[label == name]) for name in np.unique(label)]
    if len(parts) == 1:
        return parts
    signed = [_signed_volume(*part) for part in parts]
    if min(signed) < 0:
        return [(points, faces)]
    whole = sum(signed)
    order = np.argsort(signed, kind="stable")[::-1]
    kept: list[tuple[FloatArray, IndexArray]] = []
    hulls: list[FloatArray] = []
    for index in order:
        corners = parts[index][0]
        if signed[index] < _SMALLEST_SHELL * whole and any(_is_within(corners, planes) for planes in hulls):
            continue
        try:
            hulls.append(qhull(corners).equations)
        except QhullError:
            continue  # this shell is a flat fragment
        kept.append(parts[index])
    return kept if 0 < len(kept) <= _MOST_SHELLS else [(points, faces)]


def _compact(points: FloatArray, faces: IndexArray) -> tuple[FloatArray, IndexArray]:
    used, numbers = np.unique(faces, return_inverse=True)
    return points[used], numbers.reshape(-1, 3).astype(np.int32)


def _signed_volume(points: FloatArray, faces: IndexArray) -> float:
    a, b, c = (points[faces[:, corner]] for corner in range(3))
    return float(np.einsum("ij,ij->", a, np.cross(b, c))) / 6


def _is_within(points: FloatArray, planes: FloatArray) -> bool:
    return bool((points @ planes[:, :3].T + planes[:, 3]).max() < 1e-4)


def _share_out(most: int, shells: list[tuple[FloatArray, IndexArray]]) -> list[int]:
    """Distribute pieces over shells: one each, and the rest in proportion to the volume that a hull would add."""
    missing = np.array([max(qhull(points).volume - measure_volume(points, faces), 1e-12) for points, faces in shells])
    spare = max(most - len(shells), 0)
    return [1 + int(share) for share in np.floor(spare * missing / missing.sum())]


def _cut(points: FloatArray, faces: IndexArray, fineness: _Fineness, path: Path, said_in: str) -> list[Piece]:
    is_open = fineness.preprocess == "off"
    if fineness.pieces == 1 or (measure_volume(points, faces) > _CONVEX * qhull(points).volume and not is_open):
        return [limited_hull(points)]
    import coacd

    coacd.set_log_level("off")
    edges = np.sort(np.vstack([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]), axis=1)
    is_plain = bool((np.unique(edges, axis=0, return_counts=True)[1] == 2).all())
    if not (is_plain and is_open):
        check_folds(points, faces, path, said_in)
    found = coacd.run_coacd(
        coacd.Mesh(points, faces),
        threshold=fineness.threshold,
        max_convex_hull=fineness.pieces,
        mcts_iterations=fineness.iterations,
        preprocess_mode="off" if is_plain and is_open else "auto",
        seed=0,
    )
    return [limited_hull(np.asarray(vertices, dtype=np.float64)) for vertices, _ in found if len(vertices) > 3]


def _filled(pieces: Sequence[Piece], rooms: Sequence[Interior]) -> float:
    """Return the fraction of sample points in the cavities that are deeper than 1 mm inside a piece."""
    if not rooms:
        return 0.0
    shares = generator(0, "imported", "rooms").uniform(size=(_PROBES, 3))
    probes = np.vstack([room.lower + shares * (room.upper - room.lower) for room in rooms])
    inside = np.zeros(len(probes), dtype=bool)
    for corners, _ in pieces:
        planes = qhull(corners).equations
        inside |= (probes @ planes[:, :3].T + planes[:, 3] < -1e-3).all(axis=1)
    return float(inside.mean())
