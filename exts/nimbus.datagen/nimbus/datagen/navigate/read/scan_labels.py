"""Labels of scans: the objects and classes of the faces of Replica and ScanNet.

Replica: the labels of ``mesh.ply`` are in ``habitat/mesh_semantic.ply``, whose faces have an ``object_id``, and in
``habitat/info_semantic.json``. ScanNet: the labels of ``NAME_vh_clean_2.ply`` are in the same folder, in
``NAME_vh_clean_2.0.010000.segs.json`` and ``NAME.aggregation.json`` (or ``NAME_vh_clean.aggregation.json``).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from nimbus.datagen.arrays import IntArray
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.bounded import RESTORE, read_plain
from nimbus.datagen.navigate.read.assemble import class_name

_LABEL_BYTES = 1 << 28
_MOST_SEGMENTS = 1 << 24


def face_objects(mesh: Any, path: Path) -> IntArray:
    """Return the number (F,) of the object of each triangle, from the ``object_id`` of the faces of the file.

    Trimesh splits quads into two triangles: the first triangles of all quads come first, then the second ones.

    Raises:
        InputError: The labels are missing, or their count does not fit.
    """
    data = mesh.metadata.get("_ply_raw", {}).get("face", {}).get("data")
    names = getattr(getattr(data, "dtype", None), "names", None) or (data if isinstance(data, dict) else ())
    if data is None or "object_id" not in names:
        raise InputError("the faces have no object_id", where=str(path), instead=RESTORE)
    numbers = np.asarray(data["object_id"]).ravel().astype(np.int64)
    times, left = divmod(len(mesh.faces), max(len(numbers), 1))
    if left or not times:
        raise InputError(
            f"there are {len(numbers)} labels for {len(mesh.faces)} triangles", where=str(path), instead=RESTORE
        )
    return np.tile(numbers, times)


def replica_classes(path: Path) -> dict[int, str]:
    """Return the class of each object by its number, from Replica's ``info_semantic.json``.

    Raises:
        InputError: A list of the file is missing.
    """
    table = read_plain(path, limit=_LABEL_BYTES)
    names = {entry["id"]: entry["name"] for entry in _list(table, "classes", path)}
    return {
        int(entry["id"]): class_name(str(names.get(entry.get("class_id"), "")))
        for entry in _list(table, "objects", path)
    }


def scannet_files(path: Path) -> tuple[Path, Path] | None:
    """Return the files of segments and of their groups beside a scan of ScanNet; None if there are none."""
    stem, scene = path.name.removesuffix(".ply"), path.name.partition("_vh_clean")[0]
    segments = path.with_name(f"{stem}.0.010000.segs.json")
    for name in (f"{scene}.aggregation.json", f"{scene}_vh_clean.aggregation.json"):
        if segments.exists() and path.with_name(name).exists():
            return segments, path.with_name(name)
    return None


def scannet_things(mesh: Any, segments: Path, groups: Path) -> tuple[IntArray, dict[int, str]]:
    """Return the object number (F,) of each face, and the classes by number; number 0 is for unlabeled faces.

    Raises:
        InputError: A list is missing, or belongs to another mesh.
        ValueError: A number is not possible.
    """
    numbers = np.asarray(_list(read_plain(segments, limit=_LABEL_BYTES), "segIndices", segments), dtype=np.int64)
    if len(numbers) != len(mesh.vertices):
        what = f"there are {len(numbers)} segment numbers for {len(mesh.vertices)} vertices"
        raise InputError(what, where=str(segments), instead="give the mesh of these segments: *_vh_clean_2.ply")
    if not 0 <= numbers.min(initial=0) <= numbers.max(initial=0) < _MOST_SEGMENTS:
        raise ValueError(f"a segment number is not in 0 to {_MOST_SEGMENTS - 1}")
    thing_of, classes = np.zeros(int(numbers.max(initial=0)) + 1, dtype=np.int64), {}
    for entry in _list(read_plain(groups, limit=_LABEL_BYTES), "segGroups", groups):
        number = int(entry["objectId"]) + 1
        classes[number] = class_name(str(entry["label"]))
        thing_of[[one for one in entry["segments"] if 0 <= one < len(thing_of)]] = number
    return thing_of[numbers][mesh.faces[:, 0]], classes


def _list(table: Any, name: str, path: Path) -> list[Any]:
    found = table.get(name) if isinstance(table, Mapping) else None
    if not isinstance(found, list):
        raise InputError(f"the list '{name}' is missing", where=str(path), instead=RESTORE)
    return found
