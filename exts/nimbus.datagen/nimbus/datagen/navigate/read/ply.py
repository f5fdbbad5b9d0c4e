"""Reader of scans in PLY with colored vertices, and with the labels of Replica and ScanNet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.bounded import RESTORE, check_regular
from nimbus.datagen.meshes.mesh_folder import folder_resolver
from nimbus.datagen.navigate.navigation_scene import NavigationScene
from nimbus.datagen.navigate.read.assemble import choose_up, make_scene, split_by_thing
from nimbus.datagen.navigate.read.scan_labels import (
    face_objects,
    replica_classes,
    scannet_files,
    scannet_things,
)

_FILE_BYTES = 1 << 30
_GREY = 178


def read_ply(path: Path, up: str = "auto") -> NavigationScene:
    """Read a scan; its colors include the lighting.

    Args:
        path: Path of the PLY file.
        up: Up axis; ``auto`` means z, unless clearly more area is level with y up.

    Raises:
        InputError: The file cannot be read, its up axis is not clear, or ``make_scene`` refuses the scene.
    """
    replica = _replica_files(path)
    mesh = _load(replica[0] if replica else path)
    corners = np.asarray(mesh.vertices, dtype=float)[mesh.faces]
    things, classes, others = np.zeros(len(corners), dtype=np.int64), {}, []
    try:
        if replica:
            things, classes, others = face_objects(mesh, replica[0]), replica_classes(replica[1]), list(replica)
        elif found := scannet_files(path):
            things, classes, others = *scannet_things(mesh, *found), list(found)
    except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
        what = f"the labels of the scan cannot be read: {type(error).__name__}: {error}".replace("\n", " ")
        raise InputError(what, where=str(path), instead=RESTORE) from None
    turn = choose_up(corners, up, usual="z", where=str(path))
    colors = np.full((len(corners), 3, 3), _GREY, dtype=np.uint8)
    if mesh.visual.kind == "vertex":
        colors = np.asarray(mesh.visual.vertex_colors)[:, :3][mesh.faces]
    parts = split_by_thing(corners @ turn.T, things, classes, {}, colors)
    return make_scene(path, parts, is_lit=True, others=others)


def ply_files(path: Path) -> list[Path]:
    """Return the files that :func:`read_ply` reads besides the scan."""
    return list(_replica_files(path) or scannet_files(path) or ())


def _replica_files(path: Path) -> tuple[Path, Path] | None:
    """Return the labeled mesh of Replica and its classes; None if one of them is missing."""
    labelled = path.parent / "habitat" / "mesh_semantic.ply"
    names = labelled.with_name("info_semantic.json")
    return (labelled, names) if path.name == "mesh.ply" and labelled.exists() and names.exists() else None


def _load(path: Path) -> Any:
    import trimesh

    if not check_regular(path, limit=_FILE_BYTES):
        raise InputError("the file is empty", where=str(path), instead=RESTORE)
    try:
        place = str(path.absolute())  # a texture would not be covered by the hash of the scan
        mesh = trimesh.load(place, process=False, file_type="ply", skip_materials=True, resolver=folder_resolver(path))
    except Exception as error:  # the parser raises various errors for damaged files
        what = f"cannot be read as PLY: {type(error).__name__}: {error}".replace("\n", " ")
        raise InputError(what, where=str(path), instead="copy or download it again") from None
    if not isinstance(mesh, trimesh.Trimesh) or not len(mesh.faces):
        raise InputError("contains no triangles", where=str(path), instead="give a mesh, not a point cloud")
    if not 0 <= mesh.faces.min() <= mesh.faces.max() < len(mesh.vertices):
        what = f"a face refers to a vertex that does not exist; there are {len(mesh.vertices)} vertices"
        raise InputError(what, where=str(path), instead="copy or download it again")
    return mesh
