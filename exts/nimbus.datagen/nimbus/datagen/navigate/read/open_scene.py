"""Entry point of the scene readers, which chooses a reader by the format of a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.asset_folders import check_all_below, check_below
from nimbus.datagen.files.bounded import check_regular
from nimbus.datagen.navigate.navigation_scene import NavigationScene
from nimbus.datagen.navigate.read import front_json, glb, hssd, ply, usd_stage
from nimbus.datagen.navigate.read.assemble import Reader
from nimbus.datagen.splats.read import has_splats

_FORMATS: dict[str, tuple[Reader, Callable[[Path], list[Path]]]] = {
    **dict.fromkeys(glb.SUFFIXES, (glb.read_glb, glb.glb_files)),
    **dict.fromkeys(usd_stage.SUFFIXES, (usd_stage.read_usd_stage, usd_stage.usd_files)),
    ".ply": (ply.read_ply, ply.ply_files),
    ".json": (front_json.read_front_json, front_json.house_files),
}
"""Reader of each suffix, and function that lists the files that it reads besides the scene's. A new format needs a line
here and a module in this folder."""


def further_files(path: Path) -> list[Path]:
    """Return the files that :func:`open_scene` reads besides the scene's file, and possibly some that it does not.

    Raises:
        InputError: The file cannot be read, one that it names is missing, or one is a link out of the scene's folder.
    """
    check_regular(path)
    if path.name.endswith(hssd.SUFFIX):
        files, root = hssd.instance_files(path), hssd.dataset_folder(path)
        for file in files:
            check_below(file, hssd.top_folder(file, root))
        return files
    found, suffix = _FORMATS.get(path.suffix.lower()), path.suffix.lower()
    files, root = found[1](path) if found else [], path.parent.parent if suffix == ".json" else path.parent
    if suffix in usd_stage.SUFFIXES:  # it may name files anywhere, see SECURITY.md
        return files
    check_all_below(files, root)
    return files


def scene_folders(paths: Iterable[Path]) -> tuple[Path, ...] | None:
    """Return the folders in which the files of scenes lie, besides those of the scenes' own files; None for any."""
    paths = list(paths)
    if any(path.suffix.lower() in usd_stage.SUFFIXES for path in paths):  # it may name files anywhere, see SECURITY.md
        return None
    return tuple(
        hssd.dataset_folder(path) if path.name.endswith(hssd.SUFFIX) else path.parent.parent
        for path in paths
        if path.suffix.lower() == ".json"
    )


def open_scene(path: Path, up: str = "auto") -> NavigationScene:
    """Read a scene for navigation.

    Args:
        path: Path of a GLB, glTF, PLY or USD file, a ``*.scene_instance.json``, or a 3D-FRONT JSON.
        up: Up axis of the file: ``x``, ``-x``, ``y``, ``-y``, ``z``, ``-z`` or ``auto``.

    Raises:
        InputError: The format is unknown, its reader refuses the file, or it has a link out of its folder.
    """
    if not check_regular(path):
        raise InputError("the file is empty", where=str(path), instead="export or download it again")
    if path.suffix.lower() not in usd_stage.SUFFIXES:
        further_files(path)
    if path.name.endswith(hssd.SUFFIX):
        return hssd.read_scene_instance(path, up)
    found = _FORMATS.get(path.suffix.lower())
    if found is None:
        what = f"'{path.suffix}' is not a supported scene format"
        raise InputError(what, where=str(path), instead=f"export it as {', '.join(sorted(_FORMATS))}")
    if path.suffix.lower() == ".ply" and has_splats(path):
        raise InputError(
            "contains splats, not a mesh", where=str(path), instead="list it under 'splats:', not 'meshes:'"
        )
    return found[0](path, up)
