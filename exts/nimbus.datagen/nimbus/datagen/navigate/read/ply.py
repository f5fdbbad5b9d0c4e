"""Reader of scans in PLY with colored vertices; labels are read for Replica and ScanNet.

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
from nimbus.datagen.files.bounded import RESTORE, check_regular, read_plain
from nimbus.datagen.navigate.navigation_scene import NavigationScene
from nimbus.datagen.navigate.read.assemble import choose_up, class_name, make_scene, split_by_thing

_FILE_BYTES = 1 << 30
_LABEL_BYTES = 1 << 28
_GREY = 178
_MOST_SEGMENTS = 1 << 24


def read_ply(path: Path, up: str = "auto") -> NavigationScene:
    """Read a scan; its colors include the lighting.

    Args:
        path: Path of the PLY file.
        up: Up axis; ``auto`` means z, unless clearly more area is level with y up.

    Raises:
        InputError: The file cannot be read, its up axis is not clear, or ``make_scene`` refuses the scene.
    """
    labelled = path.parent / "habitat" / "mesh_semantic.ply"
    names = labelled.with_name("info_semantic.json")
    is_replica = path.name == "mesh.ply" and labelled.exists() and names.exists()
    mesh = _load(labelled if is_replica else path)
    corners = np.asarray(mesh.vertices, dtype=float)[mesh.faces]
    things, classes, others = np.zeros(len(corners), dtype=np.int64), {}, []
    try:
        if is_replica:
            things, classes, others = _face_objects(mesh, labelled), _replica_classes(names), [labelled, names]
        elif found := _scannet_files(path):
            things, classes, others = *_scannet_things(mesh, *found), list(found)
    except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
        what = f"the labels of the scan cannot be read: {type(error).__name__}: {error}".replace("\n", " ")
        raise InputError(what, where=str(path), instead=RESTORE) from None
    turn = choose_up(corners, up, usual="z", where=str(path))
    colors = np.full((len(corners), 3, 3), _GREY, dtype=np.uint8)
    if mesh.visual.kind == "vertex":
        colors = np.asarray(mesh.visual.vertex_colors)[:, :3][mesh.faces]
    parts = split_by_thing(corners @ turn.T, things, classes, {}, colors)
    return make_scene(path, parts, is_lit=True, others=others)


def _load(path: Path) -> Any:
    import trimesh

    if not check_regular(path, limit=_FILE_BYTES):
        raise InputError("the file is empty", where=str(path), instead=RESTORE)
    try:
        mesh = trimesh.load(str(path), process=False, file_type="ply")
    except Exception as error:  # the parser raises various errors for damaged files
        what = f"cannot be read as PLY: {type(error).__name__}: {error}".replace("\n", " ")
        raise InputError(what, where=str(path), instead="copy or download it again") from None
    if not isinstance(mesh, trimesh.Trimesh) or not len(mesh.faces):
        raise InputError("contains no triangles", where=str(path), instead="give a mesh, not a point cloud")
    if not 0 <= mesh.faces.min() <= mesh.faces.max() < len(mesh.vertices):
        what = f"a face refers to a vertex that does not exist; there are {len(mesh.vertices)} vertices"
        raise InputError(what, where=str(path), instead="copy or download it again")
    return mesh


def _face_objects(mesh: Any, path: Path) -> IntArray:
    """Return the number of the object of each triangle.

    Trimesh splits quads into two triangles: the first triangles of all quads come first, then the second ones.
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


def _replica_classes(path: Path) -> dict[int, str]:
    table = read_plain(path, limit=_LABEL_BYTES)
    names = {entry["id"]: entry["name"] for entry in _list(table, "classes", path)}
    return {
        int(entry["id"]): class_name(str(names.get(entry.get("class_id"), "")))
        for entry in _list(table, "objects", path)
    }


def _scannet_files(path: Path) -> tuple[Path, Path] | None:
    stem, scene = path.name.removesuffix(".ply"), path.name.partition("_vh_clean")[0]
    segments = path.with_name(f"{stem}.0.010000.segs.json")
    for name in (f"{scene}.aggregation.json", f"{scene}_vh_clean.aggregation.json"):
        if segments.exists() and path.with_name(name).exists():
            return segments, path.with_name(name)
    return None


def _scannet_things(mesh: Any, segments: Path, groups: Path) -> tuple[IntArray, dict[int, str]]:
    """Return the object number of each face, and the classes by number; number 0 is for unlabeled faces."""
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
