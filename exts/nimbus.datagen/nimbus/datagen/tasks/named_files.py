"""Files of the user that a task names: everything that is not in the closed lists of names that come with Nimbus."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import PurePath
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel

from nimbus.datagen.files.scene_files import scene_names
from nimbus.datagen.rooms.settings import parse_file_reference, parse_reference
from nimbus.datagen.tasks.statements import Randomization, Statement
from nimbus.datagen.tasks.steps import walk
from nimbus.datagen.tasks.task import BaseTask, NavigationTask, Task
from nimbus.datagen.tasks.task_file import TaskFile

_OWN_PACKAGE = "nimbus."
"""Beginning of the modules that come with Nimbus; their settings declare the files that they name."""


def own_files(task: BaseTask | TaskFile, *, draws: bool = False, runs: bool = False) -> tuple[str, ...]:
    """Return the files of the user that a task names, as they are written there; empty if all are shipped.

    Args:
        task: The task, or its form, of which only robot, scene and groups of objects are listed.
        draws: True to include the images that its randomizers draw.
        runs: True to include the files of its steps.
    """
    found = list(_assets(task))
    if isinstance(task, BaseTask):
        for settings in task.randomize.values():
            found += [name for name in settings.library_names if not is_shipped("objects", name)]
            found += settings.picture_places if draws else ()
            found += _undeclared(settings)
    return (*found, *step_files(task)) if runs else tuple(found)


def step_files(task: BaseTask | TaskFile) -> tuple[str, ...]:
    """Return the files that the steps and conditions of a task read."""
    if not isinstance(task, Task):
        return ()
    statements = [step.statement for step, _ in (*walk(task.steps), *walk(task.success))]
    return tuple(name for one in statements for name in (*one.file_names, *_undeclared(one)))


def asset_names(task: Task | TaskFile) -> tuple[str, ...]:
    """Return the names or paths of the robot, the scene and the libraries of a task."""
    libraries = [group.library for group in task.objects.values()]
    if isinstance(task, TaskFile):
        return (task.robot, task.scene_name, *libraries)
    return (
        task.robot,
        task.scene,
        *libraries,
        *(name for one in task.randomize.values() for name in one.library_names),
    )


@cache
def _shipped(room: str) -> frozenset[str]:
    return frozenset(scene_names(room, suffix=".usda" if room == "stages" else ".yaml"))


def is_shipped(room: str, name: str) -> bool:
    """Return True for the name of a file in a folder of ``scenes/``, such as ``robots``."""
    return name in _shipped(room)


def _assets(task: BaseTask | TaskFile) -> Iterator[str]:
    """Yield the files of the robot, the scene and the groups of objects, or those of a source of scenes."""
    if isinstance(task, NavigationTask):
        texts = tuple(_texts_of(task.source))
        yield from texts or filter(None, (task.source.file_kind,))
        return
    assert isinstance(task, Task | TaskFile)
    if not is_shipped("robots", task.robot):
        yield task.robot
    yield from _scene_files(task.scene_name if isinstance(task, TaskFile) else task.scene)
    yield from (group.library for group in task.objects.values() if not is_shipped("objects", group.library))


def _scene_files(scene: str) -> Iterable[str]:
    """Return the file of a scene or of the bench of its room."""
    if own := parse_file_reference(scene):
        return (own.file,)
    name = room.bench if (room := parse_reference(scene)) else scene
    return () if is_shipped("stages", name) else (name,)


def _undeclared(settings: Randomization | Statement) -> Iterator[str]:
    """Yield the texts in the settings of a plug-in, apart from names of things: any may be a file that it opens."""
    if not type(settings).__module__.startswith(_OWN_PACKAGE):
        named = settings.references() | settings.poses() if isinstance(settings, Statement) else {}
        fields = type(settings).model_fields.items()
        kept = (name for name, field in fields if name not in named and may_hold_text(field.annotation))
        yield from filter(None, _texts_of([getattr(settings, name) for name in kept]))


def _texts_of(value: object) -> Iterator[str]:
    """Yield the texts in settings, without those that can only have a few fixed values."""
    if isinstance(value, BaseModel):
        for name, field in type(value).model_fields.items():
            if may_hold_text(field.annotation):
                yield from _texts_of(getattr(value, name))
    elif isinstance(value, dict):
        for key, entry in value.items():
            yield from (*_texts_of(key), *_texts_of(entry))
    elif isinstance(value, list | tuple | set | frozenset):
        for entry in value:
            yield from _texts_of(entry)
    elif isinstance(value, str | PurePath):
        yield str(value)


def may_hold_text(annotation: Any) -> bool:
    """Return True for a type that contains any text, alone or inside of other types."""
    if annotation is Any:
        return True
    if isinstance(annotation, type) and not get_args(annotation):
        return annotation in (str, object) or issubclass(annotation, BaseModel | PurePath | dict | list | tuple)
    return get_origin(annotation) is not Literal and any(map(may_hold_text, get_args(annotation)))
