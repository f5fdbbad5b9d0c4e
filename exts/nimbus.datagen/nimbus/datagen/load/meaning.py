"""Meaning of a loaded task: relations that its success states, and categories of what it may draw."""

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
"""Facts of conditions that no instruction names."""


def meaning_of(task: Task, libraries: Mapping[str, ObjectLibrary]) -> TaskMeaning:
    """Describe what a task is about.

    Args:
        task: The task.
        libraries: Libraries by the name that the task gives them.
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
    """Name of the scene without the settings of a room; of a scene file without its folder."""
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
    """Relations that a condition states: of those that differ in what they are about, the one that fits the task."""
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
    """Check that a parameter has the value of a fact; tolerances of other values are as good."""
    if name == "by":
        return math.isclose(statement.by, math.radians(float(value.removesuffix(" deg"))))
    return name != "side" or getattr(statement, name) == value
