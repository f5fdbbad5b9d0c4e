"""Checks of an imported mesh (size, volume, closedness), and repair of small faults."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from nimbus.datagen.arrays import FloatArray, IndexArray
from nimbus.datagen.errors import InputError
from nimbus.datagen.objects.imported.folds import count_full_edges
from nimbus.datagen.objects.imported.settings import METRES, AssetSettings
from nimbus.datagen.objects.imported.surface import ImportedSurface

_SMALLEST, _LARGEST = 0.003, 1.5
"""Range of the longest side [m]."""
_LIKELY = (0.01, 0.8)
"""Plausible range of a tabletop object's size [m]."""
_THINNEST = 2e-4
"""Smallest thickness of an object [m]."""
_ROUNDS = 4
"""Number of rounds of removing faces and closing holes."""
_LONGEST_HOLE = 64
"""Largest number of edges around a hole that is closed."""
_MOST_MISSING = 1 / 3
"""Largest fraction of the closed surface that may be missing: two of the six sides of a cube."""


def convert_to_metres(surface: ImportedSurface, settings: AssetSettings, path: Path, said_in: str) -> ImportedSurface:
    """Convert a surface to meters and z up.

    Args:
        surface: Surface in the file's units.
        settings: Unit, scale and up axis, where given.
        path: The mesh file, for errors.
        said_in: File for its settings, for errors.

    Raises:
        InputError: The surface is far too large or too small; the message suggests a unit.
    """
    unit = METRES[settings.unit] if settings.unit else surface.metres
    upright = surface.upright(settings.up or surface.up).scaled(unit * settings.scale)
    extent = np.ptp(upright.corners.reshape(-1, 3), axis=0)
    longest = float(extent.max())
    if _SMALLEST <= longest <= _LARGEST:
        if extent.min() < _THINNEST:
            raise InputError(f"is flat: {_said(extent)}", where=str(path), instead="give it a thickness and a volume")
        return upright
    what = f"{_said(extent)}; expected {_SMALLEST * 1000:g} mm to {_LARGEST:g} m"
    raise InputError(what, where=str(path), instead=_likely_unit(longest / unit, said_in, settings))


def _likely_unit(numbers: float, said_in: str, settings: AssetSettings) -> str:
    """Return the setting that turns a size in the file's own numbers into a plausible one."""
    for unit in ("mm", "cm", "in", "m"):
        size = numbers * METRES[unit]
        if _LIKELY[0] <= size <= _LIKELY[1] and unit != settings.unit:
            return f"its numbers look like {unit} ({_length(size)} long): write 'unit: {unit}' in {said_in}"
    return f"write a 'unit' or a 'scale' in {said_in}"


def _said(extent: FloatArray) -> str:
    return " x ".join(_length(side) for side in extent.tolist()) + " large"


def _length(metres: float) -> str:
    return (
        f"{metres:.3g} m" if metres >= 1 else f"{metres * 100:.3g} cm" if metres >= 0.01 else f"{metres * 1000:.3g} mm"
    )


def close_mesh(points: FloatArray, faces: IndexArray, path: Path) -> tuple[FloatArray, IndexArray]:
    """Close a surface and orient its faces outward.

    Duplicate and degenerate faces are removed, faces are oriented consistently, and small holes are closed with a fan.

    Args:
        points: (N, 3) corners of the faces [m].
        faces: (F, 3) indices of points.
        path: File of the mesh, for messages.

    Returns:
        (N + H, 3) points [m], with one more for each closed hole, and (G, 3) faces.

    Raises:
        InputError: The mesh stays open, lacks much of its surface, or encloses nothing.
    """
    faces, known = _proper(faces), len(points)
    if len(_border(faces)):
        closed = _filled(points, _turned_alike(faces))
        is_open, is_full = bool(len(_border(closed[1]))), count_full_edges(closed[1]) > 0
        if is_open or is_full:  # a loose face that is closed by a fan encloses no volume
            again = _filled_again(points, faces)
            if is_open or not (len(_border(again[1])) or count_full_edges(again[1])):
                closed = again
        points, faces = closed
    if open_edges := len(_border(faces)):
        what = f"not closed: {open_edges} edges have a face on one side only, or faces of opposite orientation"
        raise InputError(what, where=str(path), instead="close its holes in the modeling tool, or remesh it")
    areas = _areas(points, faces)
    missing = float(areas[(faces >= known).any(axis=1)].sum() / max(areas.sum(), 1e-30))
    if missing > _MOST_MISSING:
        what = f"{missing:.0%} of its surface is missing, more than a third"
        raise InputError(what, where=str(path), instead="close it in the modeling tool, or export all of its parts")
    volume = _volume(points, faces)
    box = float(np.prod(np.ptp(points, axis=0)))
    if abs(volume) < max(1e-4 * box, 1e-10):
        what = f"encloses {abs(volume) * 1e6:.3g} cm³, almost nothing"
        raise InputError(what, where=str(path), instead="give its walls a thickness")
    return points, np.ascontiguousarray(faces if volume > 0 else faces[:, ::-1])


def _proper(faces: IndexArray) -> IndexArray:
    """Remove faces with a repeated vertex, and repeated faces."""
    different = (faces[:, 0] != faces[:, 1]) & (faces[:, 1] != faces[:, 2]) & (faces[:, 2] != faces[:, 0])
    faces = faces[different]
    _, first = np.unique(np.sort(faces, axis=1), axis=0, return_index=True)
    return faces[np.sort(first)]


def _border(faces: IndexArray) -> IndexArray:
    """Return (e, 2) directed edges that occur more often than their opposites."""
    edges = np.vstack([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]).astype(np.int64)
    size = int(edges.max(initial=0)) + 1
    forth, back = edges[:, 0] * size + edges[:, 1], edges[:, 1] * size + edges[:, 0]
    names, counts = np.unique(forth, return_counts=True)
    opposite, opposite_counts = np.unique(back, return_counts=True)
    place = np.clip(np.searchsorted(opposite, names), 0, len(opposite) - 1)
    matched = (opposite[place] == names) & (opposite_counts[place] == counts)
    left = names[~matched]
    return np.column_stack([left // size, left % size])


def _turned_alike(faces: IndexArray) -> IndexArray:
    """Reorient faces so that neighbors agree about the outside.

    Each face has two nodes in a graph: as given and reversed. Nodes of neighboring faces are joined if their
    orientations agree.
    """
    count = len(faces)
    edges = np.vstack([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]).astype(np.int64)
    owner, forth = np.tile(np.arange(count), 3), edges[:, 0] < edges[:, 1]
    names = edges.min(axis=1) * (int(edges.max()) + 1) + edges.max(axis=1)
    order = np.argsort(names, kind="stable")
    same = np.flatnonzero(np.diff(names[order]) == 0)
    one, two = order[same], order[same + 1]
    differ = (forth[one] == forth[two]).astype(np.int64)
    rows = np.concatenate([owner[one], owner[one] + count])
    columns = np.concatenate([owner[two] + count * differ, owner[two] + count * (1 - differ)])
    graph = coo_matrix((np.ones(len(rows)), (rows, columns)), shape=(2 * count, 2 * count))
    label = connected_components(graph, directed=False)[1]
    over = label[:count] > label[count:]
    return np.where(over[:, None], faces[:, ::-1], faces)


def _filled_again(points: FloatArray, faces: IndexArray) -> tuple[FloatArray, IndexArray]:
    """Remove the faces at edges that more than two faces share, as in scans, and close the resulting holes."""
    closed: tuple[FloatArray, IndexArray] | None = None
    for _ in range(_ROUNDS):
        edges = np.sort(np.stack([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]], axis=1), axis=2)
        _, index, counts = np.unique(edges.reshape(-1, 2), axis=0, return_inverse=True, return_counts=True)
        full = (counts[index.reshape(-1)] > 2).reshape(-1, 3).any(axis=1)
        points, faces = _filled(points, _turned_alike(_proper(faces[~full])))
        if not len(_border(faces)):
            closed = points, faces
            if not count_full_edges(faces):
                break
    return closed or (points, faces)


def _filled(points: FloatArray, faces: IndexArray) -> tuple[FloatArray, IndexArray]:
    """Close each small hole with a fan of triangles around its center."""
    after: dict[int, list[int]] = {}
    for start, end in _border(faces)[:, ::-1].tolist():
        after.setdefault(start, []).append(end)
    extra, fans = [], []
    starts = list(reversed(after))  # taken in one pass, because a mesh may have a million holes
    while starts:
        start = here = starts[-1]
        if not after[start]:
            starts.pop()
            continue
        loop = []
        while after.get(here) and len(loop) <= _LONGEST_HOLE:
            loop.append(here)
            here = after[here].pop()
            if here == start:
                break
        if here != start or len(loop) < 3:
            continue
        middle = len(points) + len(extra)
        extra.append(points[loop].mean(axis=0))
        fans += [(one, two, middle) for one, two in zip(loop, [*loop[1:], loop[0]], strict=True)]
    if not fans:
        return points, faces
    return np.vstack([points, extra]), np.vstack([faces, np.array(fans, dtype=np.int32)])


def _areas(points: FloatArray, faces: IndexArray) -> FloatArray:
    """Return the area (f,) of each face [m²]."""
    a, b, c = (points[faces[:, corner]] for corner in range(3))
    return np.linalg.norm(np.cross(b - a, c - a), axis=1) / 2


def _volume(points: FloatArray, faces: IndexArray) -> float:
    a, b, c = (points[faces[:, corner]] for corner in range(3))
    return float(np.einsum("ij,ij->", a, np.cross(b, c))) / 6
