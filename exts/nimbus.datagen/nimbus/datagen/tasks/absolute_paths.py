"""Content of a task file with absolute paths, for a copy of it in another folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path, PurePath
from typing import Any

from pydantic import BaseModel

from nimbus.datagen.files.strict_yaml import Keys
from nimbus.datagen.tasks.steps import Step, parse_steps, walk
from nimbus.datagen.tasks.task import Task, randomizer_settings
from nimbus.datagen.tasks.task_file import TaskFile


def absolute_document(task: Task) -> dict[str, Any]:
    """Return the content of a task's file, with every path absolute that loading resolves; all else is unchanged.

    No path is found by its name here: the content is read from two folders, and what differs is a path. The copy
    therefore has the paths of custom skills, conditions and randomizers too, if they have a ``seen_from``.
    """
    data: Any = task.document.data
    folder = Path(task.path).parent.absolute()
    # Both are absolute: a path that one of them leaves relative would be equal in both by chance.
    other = folder / "other"
    file = task.document.validate(TaskFile)
    data = _changed(data, file.seen_from(other), file.seen_from(folder))
    for name, value in file.randomize.items():
        settings = randomizer_settings(task.document, name, value)
        before, after = settings.seen_from(other), settings.seen_from(folder)
        if before != after:
            data = _put(data, ("randomize", name), _changed(value, before, after))
    for before, after in zip(_statements(task, file, other), _statements(task, file, folder), strict=True):
        if before.statement != after.statement:
            data = _with_step(data, before, after)
    return data


def _statements(task: Task, file: TaskFile, folder: Path) -> Iterator[Step]:
    """Yield the steps and conditions with their paths relative to a folder; their files stay closed."""
    for key, given, kind in (("steps", file.steps, "skill"), ("success", file.success, "predicate")):
        parsed = parse_steps(task.document, (key,), given, kind=kind, folder=folder, opens=False)
        yield from (step for step, _ in walk(parsed))


def _with_step(data: Any, before: Step, after: Step) -> Any:
    """Return the content with the paths of one step, which is written in its long form."""
    value = data
    for key in after.keys:
        value = value[key]
    if after.keys[-1] != after.name:  # the name alone
        return _put(data, after.keys, {after.name: _changed({}, before.statement, after.statement)})
    given = value if isinstance(value, Mapping) else {type(after.statement).main: value}
    return _put(data, after.keys, _changed(given, before.statement, after.statement))


def _changed(data: Any, before: Any, after: Any) -> Any:
    """Return data with those values of ``after`` that differ from ``before``."""
    if before == after:
        return data
    if isinstance(after, BaseModel):
        return _changed(data, dict(before), dict(after))
    if isinstance(after, Mapping):
        given = dict(data) if isinstance(data, Mapping) else {}
        moved = {name: value for name, value in after.items() if before[name] != value}
        return given | {name: _changed(given.get(name), before[name], value) for name, value in moved.items()}
    if isinstance(after, tuple | list):
        given = data if isinstance(data, tuple | list) and len(data) == len(after) else (None,) * len(after)
        return tuple(_changed(*values) for values in zip(given, before, after, strict=True))
    return str(after) if isinstance(after, PurePath) else after


def _put(data: Any, keys: Keys, value: Any) -> Any:
    """Return data with another value at a location."""
    if not keys:
        return value
    key, rest = keys[0], keys[1:]
    if isinstance(data, tuple):
        return tuple(_put(entry, rest, value) if place == key else entry for place, entry in enumerate(data))
    return {**data, key: _put(data[key], rest, value)}
