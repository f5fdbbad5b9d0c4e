"""Images that the randomizers of a stored task name: they are drawn only if the episode was made with them.

A dataset may come from another user. Without this check, its tasks could name the photos of this user, which would then
appear in the images of a new dataset.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.asset_folders import check_all_below
from nimbus.datagen.files.own_files import has_links
from nimbus.datagen.navigate.sources.files import file_hash
from nimbus.datagen.tasks.stored_files import PICTURES, compare_assets
from nimbus.datagen.tasks.task import BaseTask

AnyTask = TypeVar("AnyTask", bound=BaseTask)

_SUFFIXES = frozenset({".bmp", ".exr", ".hdr", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp"})
"""Suffixes of the images in a folder; other files in it are not drawn."""


def hash_pictures(task: BaseTask) -> dict[str, str]:
    """Return one hash of the names and contents of the images of each randomizer that names any.

    Raises:
        InputError: A folder or an image cannot be read.
    """
    hashes: dict[str, str] = {}
    for name, settings in task.randomize.items():
        if places := settings.picture_places:
            files = [file for place in places for file in _files(Path(place))]
            text = "\n".join(f"{file.name} {file_hash(file)}" for file in files)
            hashes[PICTURES + name] = hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:16]
    return hashes


def check_pictures(task: BaseTask, assets: Mapping[str, str], *, where: str) -> None:
    """Refuse a stored task that names images other than those with which its episode was made.

    No image is read unless the episode states the images of all randomizers, and all are in the working directory.

    Args:
        task: The task; relative paths begin in the working directory.
        assets: Content hashes in the episode's provenance.
        where: The episode.

    Raises:
        InputError: A randomizer names another image, an image outside the working directory, or a folder with links.
    """
    for name, settings in task.randomize.items():
        for given in settings.picture_places:
            if PICTURES + name not in assets:
                what = f"its randomizer '{name}' uses images of which the episode states no content: '{given}'"
                raise InputError(what, where=where, instead="give the task if you trust it: rerender --task FILE")
            place = Path(given).resolve()
            if not place.is_relative_to(Path.cwd().resolve()) or place.is_dir() and has_links(place):
                what = f"its randomizer '{name}' uses images outside the working directory: '{given}'"
                raise InputError(what, where=where, instead="change to a folder that contains them, or give the task")
    stated = {name: digest for name, digest in assets.items() if name.startswith(PICTURES)}
    compare_assets(hash_pictures(task), stated, where=where)


def without_pictures(task: AnyTask) -> AnyTask:
    """Return a task without the randomizers that name images, for readers of stored layouts: these draw nothing."""
    kept = {name: settings for name, settings in task.randomize.items() if not settings.picture_places}
    return replace(task, randomize=kept)


def _files(place: Path) -> Iterator[Path]:
    """Yield the images in a folder, sorted by name, or the file itself."""
    if not place.is_dir():
        yield place
        return
    try:
        files = sorted(file for file in place.iterdir() if file.suffix.lower() in _SUFFIXES)
    except OSError as error:
        raise InputError((error.strerror or str(error)).lower(), where=str(place), instead="make it readable") from None
    check_all_below(files, place)
    yield from files
