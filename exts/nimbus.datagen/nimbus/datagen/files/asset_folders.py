"""Folders of assets, such as textures and meshes, which may come from another user.

An archive or a repository keeps links, and one out of the folder may lead to a private file of this user, which would
then be drawn into datasets.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from nimbus.datagen.errors import InputError


def check_below(path: Path, folder: Path) -> None:
    """Refuse a file of a folder of assets that is a link out of this folder, like :func:`check_all_below`."""
    check_all_below([path], folder)


def check_all_below(
    files: Iterable[Path], folder: Path, *, instead: str = "put a copy of the file in its place"
) -> None:
    """Refuse files of a folder of assets that are links out of this folder; the folder itself may be a link.

    Links of a download by ``huggingface_hub`` from ``snapshots`` into ``blobs`` of the same repository are accepted.

    Args:
        files: The files; missing ones are accepted.
        folder: Folder that the user has named.
        instead: Remedy for the error.

    Raises:
        InputError: A file is such a link.
    """
    root = folder.resolve()
    places = (root, *(parent.parent / "blobs" for parent in root.parents if parent.name == "snapshots"))
    for file in files:
        real = file.resolve()
        if not any(real.is_relative_to(place) for place in places):
            what = "this is a link out of its folder, which may lead to a private file"
            raise InputError(what, where=str(file), instead=instead)


def check_no_link(path: Path, *, instead: str = "put a copy of the folder in its place") -> None:
    """Refuse a folder of assets, or a file, that is a link; one at the top of an archive may lead to any other folder.

    Raises:
        InputError: It is a link.
    """
    if path.is_symlink():
        what = "this is a link into another folder, which may contain private files"
        raise InputError(what, where=str(path), instead=instead)
