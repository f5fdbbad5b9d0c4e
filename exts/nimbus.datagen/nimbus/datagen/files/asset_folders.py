"""Folders of assets, such as textures and meshes, which may come from another user.

An archive or a repository keeps links, and one out of the folder may lead to a private file of this user, which would
then be drawn into datasets.
"""

from __future__ import annotations

from pathlib import Path

from nimbus.datagen.errors import InputError


def check_below(path: Path, folder: Path, *, instead: str = "put a copy of the file in its place") -> None:
    """Refuse a file of a folder of assets that is a link out of this folder; the folder itself may be a link.

    Links of a download by ``huggingface_hub`` from ``snapshots`` into ``blobs`` of the same repository are accepted.

    Args:
        path: The file.
        folder: Folder that the user has named.
        instead: Remedy for the error.

    Raises:
        InputError: It is.
    """
    real, root = path.resolve(), folder.resolve()
    if not real.is_relative_to(root) and not any(real.is_relative_to(place) for place in _blobs(root)):
        what = "this is a link out of its folder, which may lead to a private file"
        raise InputError(what, where=str(path), instead=instead)


def _blobs(root: Path) -> list[Path]:
    """Return the folder of contents that belongs to a snapshot of a repository."""
    return [place.parent / "blobs" for place in root.parents if place.name == "snapshots"]
