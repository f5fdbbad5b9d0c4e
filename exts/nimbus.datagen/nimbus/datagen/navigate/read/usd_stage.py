"""Reader of USD scenes: each mesh becomes a part, whose name and class come from its prims."""
# The stubs of pxr declare that every Get returns None.
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.bounded import check_regular
from nimbus.datagen.navigate.navigation_scene import NavigationScene
from nimbus.datagen.navigate.read.assemble import choose_up, class_name, make_part, make_scene
from nimbus.datagen.objects.imported.composition import check_growth
from nimbus.datagen.objects.imported.read_usd import mesh_surfaces
from nimbus.datagen.objects.imported.scene_check import check_scene, is_shipped, stage_files
from nimbus.datagen.objects.imported.used_files import check_used_files

SUFFIXES = (".usd", ".usda", ".usdc", ".usdz")
CLASS = "nimbus:class"
"""Attribute of a prim, or key of its custom data, that gives the class of all meshes below the prim."""
ROOM = "nimbus:room"
_FILE_BYTES = 1 << 30


def read_usd_stage(path: Path, up: str = "auto") -> NavigationScene:
    """Read the visible meshes of a stage; colors and textures are albedo without lighting.

    Each prim with ``nimbus:class`` is an object. For other meshes, the object is the highest prim above the mesh and
    below the default prim; the name of that prim is the class.

    Args:
        path: Path of the USD file.
        up: Up axis; with ``auto``, that of the stage.

    Raises:
        InputError: The file cannot be read, its up axis is not clear, or ``make_scene`` refuses the scene.
    """
    from pxr import Tf, Usd, UsdGeom

    check_regular(path, limit=_FILE_BYTES)
    check_scene(path)
    try:
        check_growth(path)
        stage: Any = Usd.Stage.Open(str(path.absolute()))
        if not is_shipped(path):
            check_used_files(stage, stage_files(path), path)
    except Tf.ErrorException:
        raise InputError("cannot be read as USD", where=str(path), instead="export it again") from None
    said = str(UsdGeom.GetStageUpAxis(stage)).lower()
    metres = float(UsdGeom.GetStageMetersPerUnit(stage)) or 0.01
    cache, found, notes = UsdGeom.XformCache(), [], []
    files = [Path(layer.realPath) for layer in stage.GetUsedLayers() if layer.realPath and "[" not in layer.realPath]
    for prim in stage.Traverse(Usd.TraverseInstanceProxies()):
        mesh = UsdGeom.Mesh(prim)
        is_seen = mesh and mesh.ComputePurpose() in (UsdGeom.Tokens.default_, UsdGeom.Tokens.render)
        if is_seen and mesh.ComputeVisibility() != UsdGeom.Tokens.invisible:
            matrix = np.array(cache.GetLocalToWorldTransform(prim))
            thing, kind, room = _labels(prim)
            found += [(thing, kind, room, surface) for surface in mesh_surfaces(mesh, matrix, path, None, notes)]
    if not found:
        raise InputError("contains no visible mesh", where=str(path), instead="export meshes, not points or curves")
    turn = np.eye(4) * metres
    corners = np.concatenate([surface.corners for *_, surface in found])
    turn[:3, :3] = choose_up(corners, said if up == "auto" else up, usual=said, where=str(path)) * metres
    names = _distinct_names([(thing, kind) for thing, kind, *_ in found])
    parts = [
        make_part(name, kind, surface, room=room, world_T_part=_rigid(turn))
        for name, (_, kind, room, surface) in zip(names, found, strict=True)
    ]
    return make_scene(path, parts, is_lit=False, others=[file for file in files if file != path.resolve()])


def usd_files(path: Path) -> list[Path]:
    """Return the files that :func:`read_usd_stage` reads besides the stage; none for a stage that comes with Nimbus.

    Raises:
        InputError: One of them is missing, or the stage cannot be read.
    """
    from pxr import Tf

    if is_shipped(path):
        return []
    try:
        check_growth(path)
        return [Path(file) for file in stage_files(path) if Path(file) != path.resolve()]
    except Tf.ErrorException:
        raise InputError("cannot be read as USD", where=str(path), instead="export it again") from None


def _rigid(turn: FloatArray) -> FloatArray:
    matrix = turn.copy()
    matrix[3, 3] = 1.0
    return matrix


def _labels(prim: Any) -> tuple[str, str, str]:
    """Return the path, the class and the room of the object to which a mesh belongs."""
    room, thing, kind = "", prim, ""
    above = prim
    while above and str(above.GetPath()) != "/":
        if not kind and (said := _said(above, CLASS)):
            thing, kind = above, said
        room = room or _said(above, ROOM)
        above = above.GetParent()
    if not kind:
        while (parent := thing.GetParent()) and _is_inside(parent):
            thing = parent
        kind = thing.GetName().rstrip("0123456789_")
    return str(thing.GetPath()), class_name(kind), room


def _said(prim: Any, name: str) -> str:
    """Return the value of an attribute, or of custom data with the same key; empty if there is none."""
    attribute = prim.GetAttribute(name)
    value = attribute.Get() if attribute else prim.GetCustomDataByKey(name)
    return str(value or "")


def _is_inside(prim: Any) -> bool:
    """Return True if a prim is at least two levels below the root."""
    return str(prim.GetPath()).count("/") > 1


def _distinct_names(found: list[tuple[str, str]]) -> list[str]:
    """Return the name of each mesh's object, from class and number; meshes of one object have the same name."""
    numbers: dict[str, int] = {}
    names: dict[str, str] = {}
    for thing, kind in found:
        if thing not in names:
            names[thing] = f"{kind}_{numbers.setdefault(kind, 0)}"
            numbers[kind] += 1
    return [names[thing] for thing, _ in found]
