"""Stored tasks whose files may be opened: those of datasets that this user made, and tasks that a command names.

A dataset may come from another user. Formats of scenes and meshes refer to further files in more ways than a check can
list, so that the files of a foreign task are not opened at all. Each run records its task in the user's private cache.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from nimbus.datagen.episode.provenance import Provenance
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.atomic import write_atomic
from nimbus.datagen.files.bounded import as_typed, read_plain
from nimbus.datagen.files.cache import cache_folder, writing
from nimbus.datagen.files.codec import to_json
from nimbus.datagen.files.strict_yaml import parse
from nimbus.datagen.tasks.named_files import own_files, step_files
from nimbus.datagen.tasks.task import BaseTask, NavigationTask, Task, load_any_task, parse_any_task
from nimbus.datagen.tasks.task_file import TaskFile

_named: dict[str, Task | NavigationTask] = {}
"""Tasks that the command names, by the content of their files."""


class ForeignTask(InputError):
    """Raised for a stored task whose files are not opened."""


@dataclass(frozen=True, kw_only=True)
class _Record:
    """Places of a task with which this user made episodes; a stored task states none."""

    folder: str
    """Absolute path of the folder of its file in the last run, at which its paths begin."""
    pictures: tuple[str, ...] = ()
    """Absolute paths of the images, and folders of images, from which its randomizers drew in any run."""


def record_own(text: str, assets: Mapping[str, str], *, folder: Path, pictures: Iterable[Path] = ()) -> None:
    """Record a task with which this user makes episodes.

    Args:
        text: The task file, as it is stored.
        assets: Content hashes of its assets, as they are stored.
        folder: Absolute path of the folder of the task file.
        pictures: Absolute paths of the images, and folders of images, from which its randomizers draw.

    Raises:
        InputError: The cache folder cannot be used.
        StorageError: Its disk is full.
    """
    file, known = _file(text, assets), _read(text, assets)
    places = dict.fromkeys((*(known.pictures if known else ()), *map(str, pictures)))
    record = _Record(folder=str(folder), pictures=tuple(place for place in places if place.isprintable()))
    if record != known and record.folder.isprintable():
        with writing(file.parent):
            write_atomic(file, to_json(record), durable=False, shared=False)


def record_run(task: BaseTask, assets: Mapping[str, str]) -> None:
    """Record a task with which this user makes episodes, if it is from a file of the user and names files.

    The task of an episode is not recorded, even if a command makes other episodes with it.

    Args:
        task: The task.
        assets: Content hashes of its assets, as they are stored.

    Raises:
        InputError: The cache folder cannot be used.
        StorageError: Its disk is full.
    """
    if task.is_own and own_files(task, draws=True, runs=True):
        record_own(task.text, assets, folder=Path(task.path).parent.absolute(), pictures=_pictures(task))


def is_recorded(provenance: Provenance) -> bool:
    """Return True for the task of an episode that this user made with this cache."""
    return _read(provenance.task_text, provenance.assets) is not None


def own_folder(provenance: Provenance) -> Path:
    """Return the folder at which the paths of a stored task begin: that of its file in the last run with this cache.

    They would otherwise begin in the working directory, which may be a copy of this user's dataset with files of
    another user. No file of a task that is not recorded is opened.
    """
    record = _read(provenance.task_text, provenance.assets)
    return Path(record.folder) if record else Path()


def own_pictures(provenance: Provenance) -> tuple[Path, ...]:
    """Return the images, and folders of images, from which the task of an episode draws for this user.

    These are the places of its runs with this cache and those of the equal task that the command names; none for the
    task of another user.
    """
    named = _named.get(repr(parse(provenance.task_text, "task").data)) if _named else None
    record = _read(provenance.task_text, provenance.assets)
    return (*(_pictures(named) if named else ()), *map(Path, record.pictures if record else ()))


def name_task(name_or_path: str | Path, *, skill_folders: Iterable[Path | str] = ()) -> None:
    """Allow the files of a task in stored tasks of equal content; their paths then begin at the folder of its file.

    Raises:
        InputError: There is no such task, or it is not valid.
    """
    task = load_any_task(name_or_path, skill_folders=skill_folders)
    _named[repr(task.document.data)] = task


def is_named(task: BaseTask) -> bool:
    """Return True for a task that :func:`find_named` returned."""
    return any(task is named for named in _named.values())


def parse_stored(
    provenance: Provenance,
    *,
    name: str,
    where: str,
    draws: bool = False,
    runs: bool = False,
) -> Task | NavigationTask:
    """Return the task of an episode if the files that it names may be opened, or the named task that stands for it.

    None of its files has been opened yet; those of its steps stay closed unless this user ran the task.

    Args:
        provenance: Provenance of the episode.
        name: Name of the task.
        where: The episode.
        draws: True if the images of its randomizers are opened as well.
        runs: True if its steps are executed.

    Raises:
        InputError: The task is not valid on this machine, for example because a custom skill is missing; or it names
            files and is neither recorded nor named by the command.
    """
    folder, text = own_folder(provenance), provenance.task_text
    try:
        task = parse_any_task(text, name=name, folder=folder, opens_steps=False)
    except InputError as error:
        instead = f"{error.instead}; a skill of your own needs --skills DIR".removeprefix("; ")
        raise InputError(error.what, where=f"{where}: {error.where}", instead=instead) from None
    named = find_named(task, provenance, where=where, draws=draws, runs=runs)
    return named or with_steps(task, provenance)


def with_steps(task: Task | NavigationTask, provenance: Provenance) -> Task | NavigationTask:
    """Return a stored task whose steps may open their files; the task itself if they have none, or are foreign.

    Args:
        task: The task, parsed with closed steps.
        provenance: Provenance of its episode.
    """
    if not step_files(task) or not is_recorded(provenance):
        return task
    return parse_any_task(provenance.task_text, name=task.name, folder=own_folder(provenance))


def find_named(
    task: BaseTask | TaskFile, provenance: Provenance, *, where: str, draws: bool = False, runs: bool = False
) -> Task | NavigationTask | None:
    """Return the task of the command that stands for a stored one; None if the stored task itself may be used.

    Args:
        task: The stored task.
        provenance: Provenance of its episode.
        where: The episode.
        draws: True if the images of its randomizers are opened as well.
        runs: True if its steps are executed.

    Raises:
        ForeignTask: The task names files, and is neither recorded nor named by the command.
    """
    if not (files := own_files(task, draws=draws, runs=runs)):
        return None
    if _named and (named := _named.get(repr(parse(provenance.task_text, "task").data))):
        return named
    if is_recorded(provenance):
        return None
    what = (
        f"its task names the file '{files[0]}', and was not run with this cache: files of foreign tasks are not opened"
    )
    instead = "name your copy of the task file: --task FILE, nimbus studio FILE, or in Python own_tasks.name_task(FILE)"
    if _named:
        instead = "name a task file of the same content as the episode's; that of the command differs"
    raise ForeignTask(what, where=where, instead=instead)


def _pictures(task: BaseTask) -> tuple[Path, ...]:
    return tuple(Path(place).absolute() for one in task.randomize.values() for place in one.picture_places)


def _read(text: str, assets: Mapping[str, str]) -> _Record | None:
    """Return the record of a task; None if there is none."""
    file = _file(text, assets)
    return as_typed(_Record, read_plain(file), where=str(file)) if file.exists() else None


def _file(text: str, assets: Mapping[str, str]) -> Path:
    """Return the file of the cache that records a task; those of earlier versions have no suffix."""
    content = to_json([text, dict(sorted(assets.items()))])
    name = hashlib.sha256(content.encode(errors="surrogateescape")).hexdigest()[:32]
    return cache_folder("own_tasks") / f"{name}.json"
