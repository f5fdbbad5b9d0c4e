"""Object libraries opened by name or path: files of kinds, and folders of meshes."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.scene_files import is_path, scene_file, scene_names
from nimbus.datagen.files.start_folder import start_folder
from nimbus.datagen.files.strict_yaml import load
from nimbus.datagen.objects import library as generated
from nimbus.datagen.objects.declaration import LibraryFile
from nimbus.datagen.objects.library import ObjectLibrary
from nimbus.datagen.objects.prepared.index import INDEX_NAME
from nimbus.datagen.version import versioned_hash

_ROOM = "objects"
_opened: dict[str, Path] = {}
"""Paths of the users' libraries by name, because layouts refer to a library by its name."""


def open_library(name_or_path: str | Path, *, where: str = "") -> ObjectLibrary:
    """Open a library from ``scenes/objects``, a file or a folder. Later calls find it by its name as well.

    Args:
        name_or_path: Name, path of a file, or path of a folder of meshes with a trailing slash.
        where: Location of the name, for the error.

    Raises:
        InputError: The library does not exist, or its file has an error.
    """
    path = _opened.get(str(name_or_path))
    if path is None and is_path(name_or_path) and Path(name_or_path).is_dir():
        path = Path(name_or_path)
    is_known = str(name_or_path) in scene_names(_ROOM)
    if path is None and not is_known and name_or_path and (start_folder() / name_or_path).is_dir():
        what, instead = f"unknown object library '{name_or_path}'", f"write {name_or_path}/ for the folder of that name"
        raise InputError(what, where=where, instead=instead)
    path = (path or scene_file(_ROOM, name_or_path, kind="object library", where=where)).resolve()
    if is_path(name_or_path) and path.stem in scene_names(_ROOM):
        if path.is_dir() or path != scene_file(_ROOM, path.stem, kind="object library").resolve():
            what = f"Nimbus already has an object library '{path.stem}'"
            raise InputError(what, where=where or str(path), instead="rename yours")
    library = _open(path)
    if is_path(name_or_path):
        _opened[library.name] = path  # the name refers to the library that was opened last
    return library


@lru_cache(maxsize=32)
def _open(path: Path) -> ObjectLibrary:
    if path.is_dir():
        if (path / INDEX_NAME).is_file():
            from nimbus.datagen.objects.prepared.library import PreparedLibrary

            return PreparedLibrary(path)
        from nimbus.datagen.objects.imported.library import AssetLibrary

        return AssetLibrary(path)
    if "." in path.stem:
        what = f"'{path.stem}' cannot be the name of a library"
        raise InputError(what, where=str(path), instead="rename the file: no dot before .yaml")
    file = load(path, LibraryFile)
    content_hash = versioned_hash(path.read_bytes(), generated.GENERATOR_VERSION)
    return ObjectLibrary(path.stem, file.expanded(), file.classes, content_hash)
