"""Reader of scene instances of Habitat: HSSD, ReplicaCAD and other datasets that place objects in a stage.

``scenes/NAME.scene_instance.json`` names a stage and objects by templates. The meshes of the templates are below
``stages`` and ``objects`` beside the folder ``scenes``. A table beside it may contain their categories, see ``TABLES``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.asset_folders import check_no_link
from nimbus.datagen.files.bounded import RESTORE, is_file_below, read_plain, real_path
from nimbus.datagen.geometry import transforms
from nimbus.datagen.navigate.navigation_scene import NavigationScene
from nimbus.datagen.navigate.read.assemble import (
    check_face_count,
    class_name,
    make_part,
    make_scene,
    read_rows,
    unique_names,
)
from nimbus.datagen.objects.imported.gltf_sizes import gltf_files
from nimbus.datagen.objects.imported.read import read_nodes
from nimbus.datagen.objects.imported.surface import ImportedSurface, up_matrix

SUFFIX = ".scene_instance.json"
_CATEGORY = ("main_category", "category", "clean_category", "super_category")
_MOST_OBJECTS = 20_000
_SCENES = "scenes"
"""Beginning of the name of the folder of instances, such as ``scenes-uncluttered``; the dataset is its parent. The
dataset of an instance in any other folder is that folder itself."""
_MESHES = ("stages", "objects")
"""Folders of a dataset with its meshes."""
TABLES = (
    "metadata/fpmodels-with-decomposed.csv",
    "metadata/fpmodels.csv",
    "metadata/object_categories_filtered.csv",
    "semantics/objects.csv",
)
"""Tables of categories in HSSD, the first of which is used. No other is read: an archive may be unpacked in a folder of
the user, with private tables in ``metadata`` or ``semantics``."""


@dataclass(frozen=True, kw_only=True)
class _Instance:
    """Content of an instance, and the files that it names."""

    root: Path
    """Folder of the dataset."""
    objects: list[Mapping[str, Any]]
    stage: Path
    meshes: dict[str, Path]
    """Mesh of each template."""


def read_scene_instance(path: Path, up: str = "auto") -> NavigationScene:
    """Read a stage with its objects; its colors are albedo without lighting.

    Args:
        path: Path of ``scenes/NAME.scene_instance.json`` in a dataset.
        up: Up axis: ``z`` if the files were converted; any other value means y, the axis of the format.

    Raises:
        InputError: The file has another format, a mesh is missing, or ``make_scene`` refuses the scene.
    """
    found = _read(path)
    upright = np.eye(4)
    upright[:3, :3] = up_matrix("z" if up == "z" else "y")
    meshes: dict[str, list[tuple[str, ImportedSurface]]] = {}
    parts = [
        make_part(name, _structure(name), surface, world_T_part=upright)
        for name, surface in ((name.lower(), surface) for name, surface in read_nodes(found.stage))
    ]
    categories, _ = _categories(found.root)
    templates = [_template(entry) for entry in found.objects]
    names = unique_names([class_name(categories.get(template, template)) for template in templates])
    count = sum(len(part.triangles.faces) for part in parts)
    for entry, template, name in zip(found.objects, templates, names, strict=True):
        if template not in meshes:
            meshes[template] = read_nodes(found.meshes[template])
        count += sum(len(surface.corners) for _, surface in meshes[template])
        check_face_count(count, path)
        place = upright @ _pose(entry, f"{path}: {template}")
        kind = name.rpartition("_")[0]
        parts += [make_part(name, kind, surface, world_T_part=place) for _, surface in meshes[template]]
    return make_scene(path, parts, is_lit=False, others=[found.stage, *found.meshes.values()])


def instance_files(path: Path) -> list[Path]:
    """Return the files that :func:`read_scene_instance` reads besides the instance.

    Raises:
        InputError: The instance has another format, or a mesh is missing.
    """
    found = _read(path)
    meshes = [file for mesh in (found.stage, *found.meshes.values()) for file in gltf_files(mesh)]
    _, table = _categories(found.root)
    return [*meshes, table] if table else meshes


def dataset_places(path: Path) -> list[Path]:
    """Return the folders and tables of an instance's dataset, without links, which may lead to any folder.

    The folder around these may be one of the user, into which an archive was unpacked.
    """
    root = _dataset_folder(path)
    return [root / name for name in (*_MESHES, *TABLES) if real_path(root / name) == real_path(root) / name]


def _dataset_folder(path: Path) -> Path:
    folder = path.absolute().parent
    return folder.parent if folder.name.startswith(_SCENES) else folder


def _read(path: Path) -> _Instance:
    table = read_plain(path)
    root = _dataset_folder(path)
    stage = table.get("stage_instance") if isinstance(table, Mapping) else None
    objects = table.get("object_instances", []) if isinstance(table, Mapping) else None
    if not isinstance(stage, Mapping) or not isinstance(objects, list) or len(objects) > _MOST_OBJECTS:
        raise InputError("stage_instance or object_instances is missing or invalid", where=str(path), instead=RESTORE)
    if not all(isinstance(entry, Mapping) for entry in objects):
        raise InputError("an entry of object_instances is not an object", where=str(path), instead=RESTORE)
    stage_file = _mesh(root, "stages", str(stage.get("template_name", "")), path)
    meshes: dict[str, Path] = {}
    for entry in objects:
        if (template := _template(entry)) not in meshes:
            meshes[template] = _mesh(root, "objects", str(entry.get("template_name", "")), path)
    return _Instance(root=root, objects=objects, stage=stage_file, meshes=meshes)


def _template(entry: Mapping[str, Any]) -> str:
    return Path(str(entry.get("template_name", ""))).name


def _structure(name: str) -> str:
    """Return the class of a node of the stage, from its name."""
    return next((kind for kind in ("floor", "ceiling", "wall", "stairs", "door", "window") if kind in name), "other")


def _pose(entry: Mapping[str, Any], where: str) -> FloatArray:
    """Return the transform (4, 4) of an object in the y-up world, including its scale."""
    try:
        turn = np.array(entry.get("rotation", (1, 0, 0, 0)), dtype=float)
        matrix = transforms.make_transform(
            np.array(entry.get("translation", (0, 0, 0)), dtype=float), turn / np.linalg.norm(turn)
        )
        matrix[:3, :3] *= np.array(entry.get("non_uniform_scale", (1, 1, 1)), float) * float(
            entry.get("uniform_scale", 1)
        )
    except (TypeError, ValueError, IndexError, OverflowError) as error:
        raise InputError(f"the transform of this instance is invalid: {error}", where=where, instead=RESTORE) from None
    return matrix


def _mesh(root: Path, folder: str, template: str, path: Path) -> Path:
    """Find the mesh of a template: at its full path, in the folder, or in the subfolder of its first letter.

    A full path begins with ``stages`` or ``objects``: the dataset may lie in the home folder of the user.
    """
    name = Path(template).name
    if not name or ".." in Path(template).parts:
        raise InputError(f"'{template}' is not a template", where=str(path), instead=RESTORE)
    tried = [root / folder / f"{name}.glb", root / folder / name[0] / f"{name}.glb"]
    if Path(template).parts[0] in _MESHES:
        tried.insert(0, root / f"{template}.glb")
    for file in tried:
        if is_file_below(file, top := root / file.relative_to(root).parts[0]):
            check_no_link(top)
            return file
    what = f"there is no mesh of '{template}' below {root / folder}"
    raise InputError(what, where=str(path), instead="keep the folders of the dataset together, as downloaded")


def _categories(root: Path) -> tuple[dict[str, str], Path | None]:
    """Return the category of each template, and the first table with a known column of categories, if there is one."""
    for file in filter(Path.is_file, (root / name for name in TABLES)):
        check_no_link(file.parent)
        check_no_link(file, instead="put a copy of the file in its place")
        head, *lines = read_rows(file) or [[]]
        rows = [dict(zip(head, line, strict=False)) for line in lines]
        column = next((name for name in _CATEGORY if rows and name in rows[0]), None)
        if column and "id" in rows[0]:
            return {row["id"]: row[column] for row in rows if row.get(column)}, file
    return {}, None
