"""Folders of assets, policies, recordings and results that the user names, but which may come from another user.

An archive or a repository keeps links, and one out of the folder may lead to a private file of this user, whose content
would then enter datasets or messages. A file that the user names alone may be a link; one that Nimbus looks for in a
named folder must not lead out of it. Datasets have their own check, :func:`.bounded.check_own_file`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from nimbus.datagen.errors import InputError

_DOWNLOAD = re.compile("(models|datasets|spaces)--")
"""Beginning of the name of a download by ``huggingface_hub``."""


def file_in(folder: Path, name: str) -> Path:
    """Return the path of a file, which may be missing, by the name that Nimbus gives it in a folder of the user.

    Raises:
        InputError: It is a link out of the folder, see :func:`check_all_below`.
    """
    check_below(path := folder / name, folder)
    return path


def check_below(path: Path, folder: Path) -> None:
    """Refuse a file of a folder of assets that is a link out of this folder, like :func:`check_all_below`."""
    check_all_below([path], folder)


def check_all_below(
    files: Iterable[Path], *folders: Path, instead: str = "put a copy of the file in its place"
) -> None:
    """Refuse files of folders of assets that are links out of these folders; a folder itself may be a link.

    Links of a download by ``huggingface_hub`` from ``snapshots`` into ``blobs`` of the same repository are accepted.

    Args:
        files: The files; missing ones are accepted.
        folders: Folders that the user has named, or files, each of which stands for itself.
        instead: Remedy for the error.

    Raises:
        InputError: A file is such a link.
    """
    places = tuple(place for folder in folders for place in folders_of(folder))
    for file in files:
        if not _is_in(file, places):
            what = "this is a link out of its folder, which may lead to a private file"
            raise InputError(what, where=str(file), instead=instead)


def files_below(folder: Path, root: Path) -> list[Path]:
    """Return the files in a folder and below it, without links out of the folder of assets.

    Lists of files for hashes come from here: they contain files that no reader opens, so no reader refuses them.

    Args:
        folder: Folder whose files are listed; links to folders are not followed.
        root: Folder of assets, in which the files must lie, as for :func:`check_all_below`.
    """
    places = folders_of(root)
    return [path for path in sorted(folder.rglob("*")) if path.is_file() and _is_in(path, places)]


def check_no_link(path: Path, *, instead: str = "put a copy of the folder in its place") -> None:
    """Refuse a folder of assets, or a file, that is a link; one at the top of an archive may lead to any other folder.

    Raises:
        InputError: It is a link.
    """
    if path.is_symlink():
        what = "this is a link into another folder, which may contain private files"
        raise InputError(what, where=str(path), instead=instead)


def folders_of(folder: Path) -> tuple[Path, ...]:
    """Return the folders in which the files of a folder of assets may lie: itself, and ``blobs`` of its download.

    A folder ``blobs`` beside another folder ``snapshots`` may be the user's.
    """
    root = Path(os.path.realpath(folder))
    downloads = (parent.parent for parent in root.parents if parent.name == "snapshots")
    blobs = (place / "blobs" for place in downloads if _DOWNLOAD.match(place.name))
    return (root, *(place for place in blobs if not place.is_symlink()))


def _is_in(path: Path, places: tuple[Path, ...]) -> bool:
    real = Path(os.path.realpath(path))
    return any(real.is_relative_to(place) for place in places)
