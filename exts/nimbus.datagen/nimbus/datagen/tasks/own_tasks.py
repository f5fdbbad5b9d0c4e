"""Stored tasks whose files may be opened: those of datasets that this user made, and tasks that a command names.

A dataset may come from another user. Formats of scenes and meshes refer to further files in more ways than a check can
list, so that the files of a foreign task are not opened at all. Each run records its task in the user's private cache.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from nimbus.datagen.episode.provenance import Provenance
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.atomic import write_atomic
from nimbus.datagen.files.cache import cache_folder, writing
from nimbus.datagen.files.codec import to_json
from nimbus.datagen.files.scene_files import is_path
from nimbus.datagen.files.strict_yaml import parse
from nimbus.datagen.rooms.settings import parse_file_reference, parse_reference
from nimbus.datagen.tasks.task import BaseTask, NavigationTask, Task, load_any_task, parse_any_task
from nimbus.datagen.tasks.task_file import TaskFile

_named: dict[str, Task | NavigationTask] = {}
"""Tasks that the command names, by the content of their files."""


class ForeignTask(InputError):
    """Raised for a stored task whose files are not opened."""


def record_own(text: str, assets: Mapping[str, str]) -> None:
    """Record a task with which this user makes episodes.

    Args:
        text: The task file, as it is stored.
        assets: Content hashes of its assets, as they are stored.

    Raises:
        InputError: The cache folder cannot be used.
        StorageError: Its disk is full.
    """
    record = _record(text, assets)
    if not record.exists():
        with writing(record.parent):
            write_atomic(record, "", durable=False, shared=False)


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
    provenance: Provenance, *, name: str, where: str, step_folder: Path | None = None, draws: bool = False
) -> Task | NavigationTask:
    """Return the task of an episode if the files that it names may be opened; none has been opened yet.

    Args:
        provenance: Provenance of the episode.
        name: Name of the task.
        where: The episode.
        step_folder: Folder at which the paths of its steps begin; by default the working directory.
        draws: True if the images of its randomizers are opened as well.

    Raises:
        InputError: The task is not valid, or names files and is neither recorded nor named by the command.
    """
    task = parse_any_task(provenance.task_text, name=name, step_folder=step_folder)
    return find_named(task, provenance, where=where, draws=draws) or task


def find_named(
    task: BaseTask | TaskFile, provenance: Provenance, *, where: str, draws: bool = False
) -> Task | NavigationTask | None:
    """Return the task of the command that stands for a stored one; None if the stored task itself may be used.

    Args:
        task: The stored task.
        provenance: Provenance of its episode.
        where: The episode.
        draws: True if the images of its randomizers are opened as well.

    Raises:
        ForeignTask: The task names files, and is neither recorded nor named by the command.
    """
    if not (file := _own_file(task, draws=draws)):
        return None
    if _named and (named := _named.get(repr(parse(provenance.task_text, "task").data))):
        return named
    if _record(provenance.task_text, provenance.assets).exists():
        return None
    what = f"its task names the file '{file}', and was not run with this cache: files of foreign tasks are not opened"
    instead = "name your copy of the task file: --task FILE, or nimbus studio FILE"
    if _named:
        instead = "name a task file of the same content as the episode's; that of the command differs"
    raise ForeignTask(what, where=where, instead=instead)


def _own_file(task: BaseTask | TaskFile, *, draws: bool) -> str:
    """Return a file that a task names, as it is written there; empty if all are shipped."""
    pictures = task.randomize.values() if draws and isinstance(task, BaseTask) else ()
    drawn = next((place for settings in pictures for place in settings.picture_places), "")
    if isinstance(task, NavigationTask):
        return _first_path(task.source.model_dump(mode="json")) or task.source.file_kind or drawn
    assert isinstance(task, Task | TaskFile)
    return next(filter(None, map(_file_of, asset_names(task))), drawn)


def _file_of(name: str) -> str:
    """Return the file that the name of an asset stands for; empty if it is shipped or a generated room."""
    if stage := parse_file_reference(name):
        return stage.file
    name = room.bench if (room := parse_reference(name)) else name
    return name if is_path(name) else ""


def _first_path(value: object) -> str:
    """Return the first text in the settings of a source that is a path."""
    if isinstance(value, dict | list):
        return next(filter(None, map(_first_path, value.values() if isinstance(value, dict) else value)), "")
    return value if isinstance(value, str) and is_path(value) else ""


def asset_names(task: Task | TaskFile) -> tuple[str, ...]:
    """Return the names or paths of the robot, the scene and the libraries of a task."""
    libraries = [group.library for group in task.objects.values()]
    if isinstance(task, TaskFile):
        return (task.robot, task.scene_name, *libraries)
    drawn = (name for settings in task.randomize.values() for name in getattr(settings, "libraries", ()))
    return (task.robot, task.scene, *libraries, *drawn)


def _record(text: str, assets: Mapping[str, str]) -> Path:
    """Return the file of the cache that records a task."""
    content = to_json([text, dict(sorted(assets.items()))])
    return cache_folder("own_tasks") / hashlib.sha256(content.encode(errors="surrogateescape")).hexdigest()[:32]
