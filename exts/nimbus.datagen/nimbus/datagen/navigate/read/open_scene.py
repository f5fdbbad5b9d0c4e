"""Entry point of the scene readers, which chooses a reader by the format of a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.bounded import check_regular
from nimbus.datagen.navigate.navigation_scene import NavigationScene
from nimbus.datagen.navigate.read import front_json, glb, hssd, ply, usd_stage
from nimbus.datagen.navigate.read.assemble import Reader
from nimbus.datagen.splats.read import has_splats

_READERS: dict[str, Reader] = {
    **dict.fromkeys(glb.SUFFIXES, glb.read_glb),
    **dict.fromkeys(usd_stage.SUFFIXES, usd_stage.read_usd_stage),
    ".ply": ply.read_ply,
    ".json": front_json.read_front_json,
}
"""Readers by suffix. A new format needs a line here and a module in this folder."""
_FILES: dict[str, Callable[[Path], list[Path]]] = {
    **dict.fromkeys(glb.SUFFIXES, glb.glb_files),
    **dict.fromkeys(usd_stage.SUFFIXES, usd_stage.usd_files),
    ".ply": ply.ply_files,
    ".json": front_json.house_files,
}
"""Functions by suffix that return what the readers read besides the scene's file."""


def further_files(path: Path) -> list[Path]:
    """Return the files that :func:`open_scene` reads besides the scene's file; some may only be read in other scenes.

    Raises:
        InputError: The file cannot be read, or one that it names is missing.
    """
    check_regular(path)
    if path.name.endswith(hssd.SUFFIX):
        return hssd.instance_files(path)
    files = _FILES.get(path.suffix.lower())
    return files(path) if files else []


def open_scene(path: Path, up: str = "auto") -> NavigationScene:
    """Read a scene for navigation.

    Args:
        path: Path of a GLB, glTF, PLY or USD file, a ``*.scene_instance.json``, or a 3D-FRONT JSON.
        up: Up axis of the file: ``x``, ``-x``, ``y``, ``-y``, ``z``, ``-z`` or ``auto``.

    Raises:
        InputError: The format is unknown, or its reader refuses the file.
    """
    if not check_regular(path):
        raise InputError("the file is empty", where=str(path), instead="export or download it again")
    if path.name.endswith(hssd.SUFFIX):
        return hssd.read_scene_instance(path, up)
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        what = f"'{path.suffix}' is not a supported scene format"
        raise InputError(what, where=str(path), instead=f"export it as {', '.join(sorted(_READERS))}")
    if path.suffix.lower() == ".ply" and has_splats(path):
        raise InputError(
            "contains splats, not a mesh", where=str(path), instead="list it under 'splats:', not 'meshes:'"
        )
    return reader(path, up)
