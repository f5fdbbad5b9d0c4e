"""Meaning of a loaded task: the relations of its success conditions, and the categories that it may draw."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nimbus.datagen.episode.meaning import TaskMeaning
from nimbus.datagen.rooms.settings import parse_file_reference, parse_reference
from nimbus.datagen.tasks.steps import Step, Steps

if TYPE_CHECKING:
    from nimbus.datagen.objects.library import ObjectLibrary
    from nimbus.datagen.tasks.task import Task

_NO_GOALS = frozenset({"empty_hand", "untouched", "moved"})
"""Facts of conditions that instructions never name."""


def meaning_of(task: Task, libraries: Mapping[str, ObjectLibrary]) -> TaskMeaning:
    """Return the meaning of a task.

    Args:
        task: Loaded task.
        libraries: Libraries by their name in the task.
    """
    categories: dict[str, str] = {}
    for group in task.objects.values():
        library = libraries[group.library]
        kinds = library.kinds if "all" in group.kinds else group.kinds
        categories |= {kind: library.kind(kind).category for kind in kinds}
    skills = {step.name for step in _flat(task.steps)}
    stated = {relation for step in _flat(task.success) for relation in _relations(step, task, skills)}
    return TaskMeaning(
        scene=_scene(task),
        relations=tuple(sorted(stated - _NO_GOALS)),
        steps=sum(1 for _ in _flat(task.steps)),
        categories=dict(sorted(categories.items())),
    )


def _scene(task: Task) -> str:
    """Return the name of the scene, without the settings of a room or the folder of a scene file."""
    if room := parse_reference(task.scene):
        return room.family
    found = parse_file_reference(task.scene)
    return Path(found.file if found else task.scene).stem


def _flat(steps: Steps) -> Iterator[Step]:
    for step in steps:
        if isinstance(step, Step):
            yield step
        else:
            for block in step.blocks():
                yield from _flat(block)


def _relations(step: Step, task: Task, skills: set[str]) -> Iterator[str]:
    """Yield the relations that a condition states; of alternatives, only those that fit the task's objects."""
    statement = step.statement
    for fact in type(statement).facts("states"):
        values = [getattr(statement, name, None) for name in fact.args]
        if None in values or not all(_has(statement, name, value) for name, value in fact.settings):
            continue
        is_region = len(values) > 1 and isinstance(values[1], str) and values[1] in task.regions
        if fact.relation in ("on", "at") and (fact.relation == "at") != is_region:
            continue
        if fact.relation in ("open", "turned") and (fact.relation == "turned") != ("turn" in skills):
            continue
        yield fact.relation


def _has(statement: Any, name: str, value: str) -> bool:
    """Return True if a parameter has the value of a fact; parameters such as tolerances always fit."""
    if name == "by":
        return math.isclose(statement.by, math.radians(float(value.removesuffix(" deg"))))
    return name != "side" or getattr(statement, name) == value
