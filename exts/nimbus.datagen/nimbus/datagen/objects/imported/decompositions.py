"""Trial decomposition of a foreign scene's meshes in a limited process, because Newton repeats it in each process."""
# The stubs of pxr say that every Get returns None.
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.errors import InputError
from nimbus.datagen.objects.imported.scene_check import stage_files

DECOMPOSITION_SECONDS = 300
"""Limit of the CPU time for all meshes [s]; a process may load a scene twice, with and without visual shapes. Time is
measured, because faces state little: 32,768 of a torus take 6 s, 98 of a jagged surface 24 s, 1,922 of one 118 s."""
SETTINGS: dict[str, Any] = {
    "threshold": 0.05,
    "mcts_nodes": 20,
    "mcts_iterations": 5,
    "mcts_max_depth": 1,
    "merge": False,
}
"""Newton's settings of coacd."""
_WELD = 1e-7
"""Distance below which Newton takes points for one [units of the mesh]."""


def decompose_meshes(file: str) -> list[str]:
    """Decompose the meshes for which a stage wants it, as Newton does; this is called in a limited process.

    Args:
        file: A stage that was checked.

    Returns:
        The paths of its files.

    Raises:
        InputError: The decomposition takes too long.
    """
    from pxr import Usd, UsdGeom

    path = Path(file)
    stage: Any = Usd.Stage.Open(file)
    known: set[bytes] = set()
    for prim in stage.Traverse(Usd.TraverseInstanceProxies()):
        wanted = prim.GetAttribute("physics:approximation")
        if not UsdGeom.Mesh(prim) or not wanted or str(wanted.Get()).lower() != "convexdecomposition":
            continue
        points, faces = _triangles(UsdGeom.Mesh(prim))
        digest = hashlib.sha256(points.tobytes() + faces.tobytes()).digest()
        if digest not in known:  # Newton decomposes equal meshes once
            known.add(digest)
            _decompose(points, faces, path, f"{prim.GetPath()}, mesh {len(known)} of those to decompose")
    return stage_files(path)


def _decompose(points: NDArray[np.float64], faces: NDArray[np.int64], path: Path, name: str) -> None:
    import coacd

    coacd.set_log_level("error")
    for piece in _pieces(points, faces):
        if time.process_time() > DECOMPOSITION_SECONDS:
            what = f"{name}: the convex decompositions take more than {DECOMPOSITION_SECONDS} s of CPU time"
            instead = 'write physics:approximation = "convexHull" for most meshes, or simplify them'
            raise InputError(what, where=str(path), instead=instead)
        used, corners = np.unique(piece, return_inverse=True)
        try:
            coacd.run_coacd(coacd.Mesh(points[used], corners.reshape(-1, 3)), **SETTINGS)
        except (RuntimeError, ValueError):  # Newton then takes the convex hull
            continue


def _triangles(mesh: Any) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the points of a mesh and its faces as fans of triangles."""
    points = np.asarray(mesh.GetPointsAttr().Get() or (), dtype=float).reshape(-1, 3)
    counts = np.asarray(mesh.GetFaceVertexCountsAttr().Get() or (), dtype=np.int64)
    corners = np.asarray(mesh.GetFaceVertexIndicesAttr().Get() or (), dtype=np.int64)
    numbers = np.maximum(counts - 2, 0)  # of triangles
    first = np.repeat(np.cumsum(counts) - counts, numbers)
    step = np.arange(numbers.sum()) - np.repeat(np.cumsum(numbers) - numbers, numbers)
    return points, corners[np.stack([first, first + step + 1, first + step + 2], axis=1)]


def _pieces(points: NDArray[np.float64], faces: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Yield the faces of each connected piece, which Newton decomposes one by one; equal points are one."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    _, first, same = np.unique(np.round(points / _WELD), axis=0, return_index=True, return_inverse=True)
    welded = first[same.reshape(-1)][faces]
    pairs = np.concatenate([welded[:, :2], welded[:, 1:]])
    links = coo_array((np.ones(len(pairs), dtype=bool), (pairs[:, 0], pairs[:, 1])), shape=(len(points),) * 2)
    labels = connected_components(links, directed=False)[1][welded[:, 0]]
    order = np.argsort(labels, kind="stable")
    yield from np.split(welded[order], np.flatnonzero(np.diff(labels[order])) + 1) if len(order) else ()
