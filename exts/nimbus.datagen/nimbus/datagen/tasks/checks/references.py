"""Check that references of steps and conditions exist in their task file and have the right type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from nimbus.datagen.errors import InputError, suggest
from nimbus.datagen.tasks.points import Point, is_tool, parse_pose, points_in
from nimbus.datagen.tasks.references import (
    ATTRIBUTES,
    AttributeRef,
    Expression,
    MemberRef,
    NameRef,
    names_in,
    parse_reference,
)
from nimbus.datagen.tasks.statements import Reference
from nimbus.datagen.tasks.steps import Composite, Step, walk

if TYPE_CHECKING:
    from nimbus.datagen.files.strict_yaml import Keys
    from nimbus.datagen.tasks.task import Task


def check_references(task: Task) -> None:
    """Check every reference of a task's steps and conditions.

    Raises:
        InputError: A reference cannot be resolved, or its target has the wrong type; the first one is reported.
    """
    for steps in (task.steps, task.success):
        for step, loops in walk(steps):
            scope = _scope(task, loops)
            for keys, mark, expression in references_of(task, step):
                try:
                    _check_kind(expression, mark, scope, task)
                except InputError as error:
                    raise task.error(keys, error.what, instead=error.instead) from None


def references_of(task: Task, step: Step) -> Iterator[tuple[Keys, Reference, Expression]]:
    """Yield every reference of a step with its location and the types that it may have."""
    for field, mark in step.statement.references().items():
        value, keys = getattr(step.statement, field), (*step.keys, field)
        entries = {keys: value} if isinstance(value, str) else {(*keys, i): text for i, text in enumerate(value or ())}
        for place, text in entries.items():
            try:
                yield place, mark, parse_reference(text)
            except InputError as error:
                raise task.error(place, error.what, instead=error.instead) from None
    for field, point in points_of(step):
        if not is_tool(point.thing, task.objects):
            yield (*step.keys, field), _POINT, point.thing


def points_of(step: Step) -> Iterator[tuple[str, Point]]:
    """Yield the parameter and the thing's point for every point that a step gives in words."""
    for field in step.statement.poses():
        if isinstance(value := getattr(step.statement, field), str):
            yield from ((field, point) for point in points_in(parse_pose(value)))


_POINT = Reference(("object", "fixture", "region"))
"""Types of things that have points."""


def _scope(task: Task, loops: tuple[Composite, ...]) -> dict[str, str]:
    """Return the type of each name: ``object``, ``objects`` or ``region``."""
    scope = dict.fromkeys(task.regions, "region")
    scope |= {name: "object" if group.count == (1, 1) else "objects" for name, group in task.objects.items()}
    for loop in loops:
        if loop.group not in task.objects:
            hint = suggest(loop.group, task.objects)
            raise task.error(loop.keys, f"unknown group of objects '{loop.group}'", instead=hint, at_key=True)
        if loop.variable in scope:
            what = f"the loop variable '{loop.variable}' is already the name of something"
            instead = f"rename it; taken: {', '.join(sorted(scope))}"
            raise task.error(loop.keys, what, instead=instead, at_key=True)
        scope[loop.variable] = "object"
    return scope


A = {
    "object": "an object",
    "objects": "a group of objects",
    "fixture": "a fixture",
    "region": "a region",
    "text": "a text",
}


def needed_names(mark: Reference) -> str:
    """Describe the types that a reference may have."""
    return " or ".join(A[kind] for kind in mark.kinds)


def _check_kind(expression: Expression, mark: Reference, scope: Mapping[str, str], task: Task) -> None:
    kind = _kind(expression, scope, task)
    if kind is None and "fixture" not in mark.kinds:
        known = [name for name, thing in scope.items() if thing.removesuffix("s") in mark.kinds]
        name = sorted(names_in(expression))[0]
        raise InputError(f"unknown {' or '.join(mark.kinds)} '{name}'", instead=suggest(name, known))
    if kind == "objects" and mark.many and isinstance(expression, NameRef):
        return
    if kind == "objects" and "object" in mark.kinds and isinstance(expression, NameRef):
        name = expression.name
        raise InputError(
            f"'{name}' is a group of objects; one object is needed", instead=f"loop with 'for item in {name}:'"
        )
    if kind is not None and kind not in mark.kinds:
        raise InputError(f"this names {A[kind]}", instead=f"name {needed_names(mark)}")


def _kind(expression: Expression, scope: Mapping[str, str], task: Task) -> str | None:
    """Return the type of a reference's target; None where only the scene determines it."""
    match expression:
        case NameRef(name):
            return scope.get(name)
        case AttributeRef(base, name):
            if name not in ATTRIBUTES:
                raise InputError(f"unknown attribute '{name}'", instead=suggest(name, ATTRIBUTES))
            kind = _kind(base, scope, task)
            if kind is None and isinstance(base, NameRef):
                raise InputError(f"unknown name '{base.name}'", instead=suggest(base.name, scope))
            if kind in ("objects", "region", "text"):
                raise InputError(
                    f"'.{name}' needs one object before it, and this is {A[kind]}",
                    instead="name one object, such as item or items[0]",
                )
            return "text"
        case MemberRef(base, index):
            if not isinstance(index, (str, int)):
                _check_index(index, scope, task)
            if isinstance(base, NameRef) and base.name in task.objects:
                certain = task.objects[base.name].count[0]
                if not isinstance(index, int) or index >= certain:
                    what = f"'{base.name}' may have only {certain} objects"
                    raise InputError(what, instead=f"write {base.name}[0], or loop with 'for item in {base.name}:'")
                return "object"
            if _kind(base, scope, task) is not None:
                raise InputError("brackets select from a group, but this is one thing", instead="remove the brackets")
            return None


def _check_index(index: Expression, scope: Mapping[str, str], task: Task) -> None:
    kind = _kind(index, scope, task)
    if kind is None:
        name = sorted(names_in(index))[0]
        raise InputError(f"unknown name '{name}'", instead=suggest(name, scope))
    if kind != "text":
        raise InputError("a class goes inside the brackets", instead="write for example [item.class]")
