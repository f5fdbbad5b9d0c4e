"""Images that a stored task or a stored layout names: they are drawn only if the episode was made with them.

A dataset may come from another user. Without this check, its tasks could name the photos of this user, which would then
appear in the images of a new dataset; errors would reveal whether a file exists and has a guessed content.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from nimbus.datagen.episode.layout import Layout
from nimbus.datagen.episode.provenance import Provenance
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.asset_folders import check_all_below, check_below
from nimbus.datagen.navigate.sources.files import file_hash
from nimbus.datagen.tasks.own_tasks import ForeignTask, own_pictures
from nimbus.datagen.tasks.stored_files import PICTURES, compare_assets
from nimbus.datagen.tasks.task import BaseTask

AnyTask = TypeVar("AnyTask", bound=BaseTask)

_SUFFIXES = frozenset({".bmp", ".exr", ".hdr", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp"})
"""Suffixes of the images in a folder; other files in it are not drawn."""
_MOST_NAME = 255
"""Longest name of a file [bytes]."""


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


def check_pictures(task: BaseTask, provenance: Provenance, *, where: str) -> None:
    """Refuse a stored task that names images other than those with which its episode was made.

    No image is read unless the episode states the images of all randomizers, and an own task draws from all places.

    Args:
        task: The task, whose paths begin in a folder of this user.
        provenance: Provenance of its episode.
        where: The episode.

    Raises:
        InputError: A randomizer names another image, or one that no task of this user draws.
    """
    assets, own = provenance.assets, own_pictures(provenance)
    for name, settings in task.randomize.items():
        for place in map(Path, settings.picture_places):
            if PICTURES + name not in assets:
                what = f"its randomizer '{name}' uses images of which the episode states no content: '{place.name}'"
                raise InputError(what, where=where, instead="give the task if you trust it: rerender --task FILE")
            if place.absolute() not in own:
                what = f"its randomizer '{name}' uses images that no task of yours draws: '{place.name}'"
                raise ForeignTask(what, where=where, instead="name your copy of the task file: --task FILE")
    stated = {name: digest for name, digest in assets.items() if name.startswith(PICTURES)}
    compare_assets(hash_pictures(task), stated, where=where)


def shown_layout(layout: Layout, provenance: Provenance, *, where: str) -> Layout:
    """Return a stored layout with the images that may be shown: every stored layout that is drawn passes here.

    Its images and its environment map must lie where an own run of its task drew them, or where the task that the
    command names draws them, whose folder may have moved. No other path is opened or asked for.

    Args:
        layout: The layout, as it is stored.
        provenance: Provenance of its episode.
        where: The episode.

    Raises:
        ForeignTask: The layout names another image.
        InputError: The image is a link out of its folder.
    """
    visual = layout.visual
    if visual.dome is None and not any(look.picture for look in visual.surfaces.values()):
        return layout
    places = own_pictures(provenance)

    def own(given: str, user: str) -> str:
        if (found := _own_picture(Path(given), places)) is None:
            what = f"its layout names an image for the {user} that no task of yours draws: it is not opened"
            raise ForeignTask(what, where=where, instead="name your copy of the task file: --task FILE")
        return str(found)

    surfaces = {
        name: replace(look, picture=own(look.picture, f"surface '{name}'")) if look.picture else look
        for name, look in visual.surfaces.items()
    }
    dome = visual.dome and replace(visual.dome, texture=own(visual.dome.texture, "dome"))
    return replace(layout, visual=replace(visual, surfaces=surfaces, dome=dome))


def _own_picture(given: Path, places: Iterable[Path]) -> Path | None:
    """Return the image of a stored path in one of the user's own places; None if it is in none of them."""
    name = given.name
    if name in ("", "..") or not name.isprintable() or len(name.encode()) > _MOST_NAME:
        return None
    drawn = given.suffix.lower() in _SUFFIXES
    known = {place if place.name == name else place / name: place for place in places if drawn or place.name == name}
    found = given if given in known else next((file for file in known if file.is_file()), None)
    if found and found != known[found]:
        check_below(found, known[found])
    return found


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
