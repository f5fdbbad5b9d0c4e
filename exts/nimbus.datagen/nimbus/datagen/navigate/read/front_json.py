"""Reader of 3D-FRONT houses: a JSON file with meshes, furniture and rooms, y up.

The mesh of a furniture entry is ``3D-FUTURE-model/JID/raw_model.obj`` in the folder of the JSON file or in its parent,
where ``JID`` is the entry's ``jid``. If the mesh is missing or a link, a box of the entry's size replaces it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.asset_folders import files_below
from nimbus.datagen.files.bounded import RESTORE, is_file_below, read_plain
from nimbus.datagen.geometry import transforms
from nimbus.datagen.navigate.navigation_scene import NavigationScene, ScenePart
from nimbus.datagen.navigate.read.assemble import (
    bounding_rooms,
    check_face_count,
    class_name,
    make_part,
    make_scene,
    triangles_of,
    unique_names,
)
from nimbus.datagen.objects.imported.read import read_surface
from nimbus.datagen.objects.imported.surface import color_surface, up_matrix

_FILE_BYTES = 1 << 29
_STRUCTURE = ("floor", "ceiling", "wall", "door", "window", "baseboard")
_CUBE = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (0, 1) for z in (-0.5, 0.5)], dtype=float)
_CUBE_FACES = np.array(
    [(0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1), (2, 3, 7), (2, 7, 6), (0, 2, 6), (0, 6, 4)]
    + [(1, 5, 7), (1, 7, 3)]
)


def read_front_json(path: Path, up: str = "auto") -> NavigationScene:
    """Read a house; its colors are albedo without lighting.

    Args:
        path: Path of the JSON file.
        up: Up axis: ``z`` if the file was converted; any other value means y, the axis of the format.

    Raises:
        InputError: The file has another format, or ``make_scene`` refuses the scene.
    """
    house = read_plain(path, limit=_FILE_BYTES)
    try:
        meshes = {entry["uid"]: entry for entry in house["mesh"]}
        furniture = {entry["uid"]: entry for entry in house["furniture"]}
        rooms = [(str(room["instanceid"]), str(room["type"]), room["children"]) for room in house["scene"]["room"]]
        upright = np.eye(4)
        upright[:3, :3] = up_matrix("z" if up == "z" else "y")
        parts, files, count = [], [], 0
        chosen = [(name, child) for name, _, children in rooms for child in children if child["ref"] in furniture]
        kinds = [class_name(str(_title(furniture[child["ref"]]))) for _, child in chosen]
        for name, _, children in rooms:
            for child in children:
                if child["ref"] in meshes:
                    parts.append(_structure(meshes[child["ref"]], name, upright @ _pose(child), len(parts)))
                    check_face_count(count := count + len(parts[-1].triangles.faces), path)
        for (room, child), kind, name in zip(chosen, kinds, unique_names(kinds), strict=True):
            part, file = _thing(path, furniture[child["ref"]], name, kind, room, upright @ _pose(child))
            parts.append(part)
            check_face_count(count := count + len(part.triangles.faces), path)
            files += [file] if file else []
    except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
        what = f"is not a 3D-FRONT house: {type(error).__name__}: {error}"
        raise InputError(what, where=str(path), instead=RESTORE) from None
    found = bounding_rooms(parts, [name for name, *_ in rooms])
    types = {name: class_name(kind) for name, kind, _ in rooms}
    found = [replace(room, kind=types[room.name]) for room in found]
    return make_scene(path, parts, rooms=found, is_lit=False, others=sorted(set(files)))


def _title(entry: Mapping[str, Any]) -> Any:
    return entry.get("category") or str(entry.get("title", "")).rpartition("/")[2]


def _pose(child: Mapping[str, Any]) -> FloatArray:
    x, y, z, w = np.array(child["rot"], dtype=float) / np.linalg.norm(child["rot"])
    matrix = transforms.make_transform(np.array(child["pos"], dtype=float), (w, x, y, z))
    matrix[:3, :3] *= np.array(child["scale"], dtype=float)
    return matrix


def _structure(entry: Mapping[str, Any], room: str, place: FloatArray, number: int) -> ScenePart:
    points = np.array(entry["xyz"], dtype=float).reshape(-1, 3) @ place[:3, :3].T + place[:3, 3]
    faces = np.array(entry["faces"], dtype=int).reshape(-1, 3)
    said = str(entry.get("type", "")).lower()
    kind = next((name for name in _STRUCTURE if name in said), "other")
    soup = triangles_of(points[faces])
    return ScenePart(name=f"{kind}_{number}", object_class=kind, room=room, triangles=soup)


def _thing(
    path: Path, entry: Mapping[str, Any], name: str, kind: str, room: str, place: FloatArray
) -> tuple[ScenePart, Path | None]:
    if file := _model(path, entry):
        return make_part(name, kind, read_surface(file), room=room, world_T_part=place), file
    corners = (_CUBE * np.array(entry["size"], dtype=float))[_CUBE_FACES]
    box = color_surface(corners, np.full((len(corners), 3), 170, np.uint8))
    return make_part(name, kind, box, room=room, world_T_part=place), None


def _model(path: Path, entry: Mapping[str, Any]) -> Path | None:
    """Return the mesh of a furniture entry; None if it, or a folder of the models, is missing or a link."""
    jid = Path(str(entry.get("jid", ""))).name
    for models in model_folders(path):
        file = models / jid / "raw_model.obj"
        has_link = any(map(os.path.islink, (file, file.parent)))
        if jid not in ("", "..") and is_file_below(file, models) and not has_link:
            return file
    return None


def model_folders(path: Path) -> list[Path]:
    """Return the folders that may contain the models of a house, without links, which may lead to any folder."""
    folders = [folder / "3D-FUTURE-model" for folder in path.absolute().parents[:2]]
    return [folder for folder in folders if not folder.is_symlink()]


def house_files(path: Path) -> list[Path]:
    """Return the files that :func:`read_front_json` may read besides the house: those in the folders of its models.

    Links out of the folder of a model are left out: no reader opens them.

    Raises:
        InputError: The file has another format.
    """
    house = read_plain(path, limit=_FILE_BYTES)
    try:
        models = {_model(path, entry) for entry in house["furniture"]}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        what = f"is not a 3D-FRONT house: {type(error).__name__}: {error}"
        raise InputError(what, where=str(path), instead=RESTORE) from None
    return [file for model in models if model for file in files_below(model.parent, model.parent)]
