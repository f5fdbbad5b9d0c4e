"""Check that every kind of object that may be drawn has the properties that steps and conditions need."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nimbus.datagen.errors import InputError, suggest
from nimbus.datagen.objects.model import FLEXIBLE_NOUNS, features, known_features
from nimbus.datagen.tasks.checks.references import A, needed_names, points_of, references_of
from nimbus.datagen.tasks.references import (
    Expression,
    GroupRef,
    RegionRef,
    build_environment,
    evaluate,
    names_in,
    resolve,
)
from nimbus.datagen.tasks.statements import Reference
from nimbus.datagen.tasks.steps import Step, Steps, walk

if TYPE_CHECKING:
    from nimbus.datagen.files.strict_yaml import Keys
    from nimbus.datagen.tasks.task import Task


_MOST_KINDS = 200
"""Largest number of kinds of a group that are checked one by one; in a larger group, one kind per class is checked."""

_EXAMPLES = {"cloth": "blue_towel of the library cloths", "cable": "black_cable of the library cables"}
"""Kinds to name in messages, by the word for them."""


@dataclass(frozen=True)
class _Sample:
    """Object of a kind that may be drawn."""

    name: str
    group: str
    kind: str
    object_class: str


def _samples(task: Task, name: str, libraries: Mapping[str, Any]) -> list[_Sample]:
    """Return one object of every kind that the group may draw."""
    group = task.objects[name]
    library = libraries[group.library]
    classes = {kind: library.kind(kind).object_class for kind in library.kinds if group.kinds == "all"}
    classes = classes or {kind: library.kind(kind).object_class for kind in group.kinds}
    if len(classes) > _MOST_KINDS:
        classes = dict({object_class: (kind, object_class) for kind, object_class in classes.items()}.values())
    return [_Sample(f"{name}_0", name, kind, group.class_of(one)) for kind, one in classes.items()]


def check_kinds(task: Task, steps: Steps, stage: Any, libraries: Mapping[str, Any]) -> None:
    """Resolve every reference for every kind of object that may be drawn.

    Args:
        task: The task.
        steps: Steps or conditions of the task.
        stage: Scene of the task, with ``fixtures``.
        libraries: Object libraries by the name that the task gives them.

    Raises:
        InputError: A reference cannot be resolved, or may name a kind without a needed property.
    """
    samples = {name: _samples(task, name, libraries) for name in task.objects}
    scene = build_environment(fixtures=stage.fixtures.values(), regions=task.regions)
    scene |= {name: _stand_in(task, name, kinds[0]) for name, kinds in samples.items()}
    for step, loops in walk(steps):
        groups = {name: name for name in task.objects} | {loop.variable: loop.group for loop in loops}
        for keys, mark, expression in references_of(task, step):
            drawn = sorted(names_in(expression) & groups.keys())
            for chosen in itertools.product(*(samples[groups[name]] for name in drawn)):
                things = {name: _stand_in(task, name, sample) for name, sample in zip(drawn, chosen, strict=True)}
                thing = _check_leads(task, keys, mark, expression, scene | things)
                if isinstance(thing, GroupRef):
                    thing = thing.members[0]
                if isinstance(thing, _Sample):
                    _check_parts(task, keys, mark, step, libraries[task.objects[thing.group].library], thing)


def _stand_in(task: Task, name: str, sample: _Sample) -> Any:
    return GroupRef(name, (sample,) * task.objects[name].count[1]) if name in task.objects else sample


def _check_leads(task: Task, keys: Keys, mark: Reference, expression: Expression, names: Mapping[str, Any]) -> Any:
    """Return the target of a reference."""
    try:
        thing = evaluate(expression, names)
        if isinstance(thing, GroupRef) and mark.many:
            return thing
        thing = resolve(expression, names)
    except InputError as error:
        raise task.error(keys, error.what, instead=error.instead) from None
    kind = "object" if isinstance(thing, _Sample) else "region" if isinstance(thing, RegionRef) else "fixture"
    if kind not in mark.kinds:
        raise task.error(keys, f"'{thing.name}' is {A[kind]}; {needed_names(mark)} is needed")
    return thing


def _check_parts(task: Task, keys: Keys, mark: Reference, step: Step, library: Any, thing: _Sample) -> None:
    """Check that the kind has the moving part or the point that the step needs."""
    if mark.jointed:
        parts = [part.name for part in library.model(thing.kind, 0).parts]
        if not parts:
            raise task.error(keys, f"a {_said(thing.kind)} has no moving part", instead="choose kinds that have one")
        joint = getattr(step.statement, "joint", None)
        if joint is not None and joint not in parts:
            place = (*step.keys, "joint")
            raise task.error(place, f"a {_said(thing.kind)} has no part '{joint}'", instead=suggest(joint, parts))
    parameter = str(keys[len(step.keys)] if len(keys) > len(step.keys) else "")
    needed = type(step.statement).needs_flexible if parameter in ("", type(step.statement).main) else ""
    if needed and library.kind(thing.kind).bends_as != needed:
        what = f"a {_said(thing.kind)} is not {FLEXIBLE_NOUNS[needed]}"
        raise task.error(keys, what, instead=f"choose kinds that are, such as {_EXAMPLES[needed]}")
    if frame := type(step.statement).frames.get(parameter):
        frame, known = frame.format(**dict(step.statement)), library.model(thing.kind, 0).frames
        if frame not in known:
            instead = f"{suggest(frame, known)}; frames of an imported kind go under 'add' in its asset.yaml"
            raise task.error(keys, f"a {_said(thing.kind)} has no frame '{frame}'", instead=instead)
    for field, point in points_of(step):
        if (*step.keys, field) == keys and point.feature not in ("center", "top"):
            known = known_features(features(library.model(thing.kind, 0)))
            if point.feature not in known:
                what = f"a {_said(thing.kind)} has no point '{point.feature}'"
                raise task.error(keys, what, instead=suggest(point.feature, known))


def _said(kind: str) -> str:
    return kind.replace("_", " ")
