"""Entry point of the scene readers, which chooses a reader by the format of a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.asset_folders import check_all_below
from nimbus.datagen.files.bounded import check_regular
from nimbus.datagen.navigate.navigation_scene import NavigationScene
from nimbus.datagen.navigate.read import front_json, glb, hssd, ply, usd_stage
from nimbus.datagen.navigate.read.assemble import Reader
from nimbus.datagen.splats.read import has_splats


class _Format(NamedTuple):
    read: Reader
    list_files: Callable[[Path], list[Path]]
    """Lists the files that the reader opens besides the scene's."""
    list_places: Callable[[Path], list[Path]] | None
    """Lists the files and folders in which these lie; None for any, see SECURITY.md."""


def _own_folder(path: Path) -> list[Path]:
    return [path.parent]


_FORMATS = {
    **dict.fromkeys(glb.SUFFIXES, _Format(glb.read_glb, glb.glb_files, _own_folder)),
    **dict.fromkeys(usd_stage.SUFFIXES, _Format(usd_stage.read_usd_stage, usd_stage.usd_files, None)),
    ".ply": _Format(ply.read_ply, ply.ply_files, _own_folder),
    ".json": _Format(front_json.read_front_json, front_json.house_files, front_json.model_folders),
    hssd.SUFFIX: _Format(hssd.read_scene_instance, hssd.instance_files, hssd.dataset_places),
}
"""Format of each suffix. A new one needs a line here and a module in this folder."""


def _format(path: Path) -> _Format | None:
    return _FORMATS.get(hssd.SUFFIX if path.name.endswith(hssd.SUFFIX) else path.suffix.lower())


def further_files(path: Path) -> list[Path]:
    """Return the files that :func:`open_scene` reads besides the scene's file, and possibly some that it does not.

    Raises:
        InputError: The file cannot be read, one that it names is missing, or one is a link out of the scene's places.
    """
    check_regular(path)
    found = _format(path)
    files = found.list_files(path) if found else []
    if (places := scene_places([path])) is not None:
        check_all_below(files, *places)
    return files


def scene_places(paths: Iterable[Path]) -> list[Path] | None:
    """Return the files and folders in which the further files of scenes lie; None for any."""
    places: set[Path] = set()
    for path in paths:
        if (found := _format(path)) is None:
            continue
        if found.list_places is None:
            return None
        places.update(found.list_places(path))
    return sorted(places)


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
    found = _format(path)
    if found is None:
        what = f"'{path.suffix}' is not a supported scene format"
        raise InputError(what, where=str(path), instead=f"export it as {', '.join(sorted(_FORMATS))}")
    if found.list_places:
        further_files(path)
    if path.suffix.lower() == ".ply" and has_splats(path):
        raise InputError(
            "contains splats, not a mesh", where=str(path), instead="list it under 'splats:', not 'meshes:'"
        )
    return found.read(path, up)
