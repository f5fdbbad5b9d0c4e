"""Whether what a task names exists: within its file, and in the scene, the robot and the object libraries."""

from __future__ import annotations

import itertools
import string
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from nimbus.datagen.errors import InputError, nearest
from nimbus.datagen.pose_expression import is_tool, parse_pose, points_in
from nimbus.datagen.references import (
    ATTRIBUTES,
    Attribute,
    Expression,
    Group,
    Member,
    Name,
    Place,
    environment,
    evaluate,
    names_in,
    parse_reference,
    resolve,
)
from nimbus.datagen.skill import Reference
from nimbus.datagen.steps import Composite, Step, Steps, walk

if TYPE_CHECKING:
    from nimbus.datagen.strict_yaml import Keys
    from nimbus.datagen.task import Task


class Stage(Protocol):
    """What a check needs of a scene; ``usd.stage.StageInfo`` has it."""

    @property
    def fixtures(self) -> Mapping[str, Any]:
        """By name; each has ``name``, ``group`` and ``object_class``."""
        ...

    @property
    def surfaces(self) -> Mapping[str, Any]:
        """By name; each has ``lower`` and ``upper`` corners in the world frame [m]."""
        ...


class Library(Protocol):
    """What a check needs of an object library."""

    @property
    def kinds(self) -> Collection[str]:
        """Names of its kinds."""
        ...

    def kind(self, name: str) -> Any:
        """A kind's record, which has ``object_class``."""
        ...


def check_names(task: Task) -> None:
    """Check what the file alone can tell: names, references, loops, wordings.

    Raises:
        InputError: The first mistake, with its place in the file.
    """
    for name in task.regions:
        if name in task.objects:
            raise task.error(("regions", name), f"'{name}' also names a group of objects", instead="rename one")
    for name, group in task.objects.items():
        if group.region not in task.regions:
            hint = nearest(group.region, task.regions)
            raise task.error(("objects", name, "region"), f"unknown region '{group.region}'", instead=hint)
    for steps in (task.steps, task.success):
        for step, loops in walk(steps):
            scope = _scope(task, loops)
            for keys, mark, expression in _references(task, step):
                try:
                    _check_kind(expression, mark, scope, task)
                except InputError as error:
                    raise task.error(keys, error.what, instead=error.instead) from None
    _check_instructions(task)


def check_task(task: Task, stage: Stage, links: Collection[str], libraries: Mapping[str, Library]) -> None:
    """Check a task against the scene, the robot and the libraries that it names.

    Args:
        task: The task.
        stage: Its scene.
        links: Names of the robot's links that a camera can be fixed to.
        libraries: The object libraries by the name that the task gives them.

    Raises:
        InputError: The first mistake, with its place in the file.
    """
    for name in task.regions:
        _check_region(task, name, stage)
        if name in stage.fixtures:
            raise task.error(("regions", name), f"'{name}' also names a fixture of the scene", instead="rename it")
    for name in task.objects:
        _check_objects(task, name, stage, libraries)
    for name, camera in task.cameras.items():
        if camera.mount and camera.mount not in (*links, "hand"):
            hint = nearest(camera.mount, (*links, "hand"))
            raise task.error(("cameras", name, "mount"), f"the robot has no link '{camera.mount}'", instead=hint)
    _check_fixtures(task, task.steps, stage, libraries)
    _check_fixtures(task, task.success, stage, libraries)


def _references(task: Task, step: Step) -> Iterator[tuple[Keys, Reference, Expression]]:
    for field, mark in step.statement.references().items():
        value, keys = getattr(step.statement, field), (*step.keys, field)
        entries = {keys: value} if isinstance(value, str) else {(*keys, i): text for i, text in enumerate(value or ())}
        for place, text in entries.items():
            try:
                yield place, mark, parse_reference(text)
            except InputError as error:
                raise task.error(place, error.what, instead=error.instead) from None
    for field in step.statement.poses():
        if isinstance(value := getattr(step.statement, field), str):
            for point in points_in(parse_pose(value)):
                if not is_tool(point.thing, task.objects):
                    yield (*step.keys, field), _POINT, point.thing


_POINT = Reference(("object", "fixture", "region"))
"""What a point can be of."""


def _scope(task: Task, loops: tuple[Composite, ...]) -> dict[str, str]:
    """What kind of thing each name stands for: ``object``, ``objects`` or ``region``."""
    scope = dict.fromkeys(task.regions, "region")
    scope |= {name: "object" if group.count == (1, 1) else "objects" for name, group in task.objects.items()}
    for loop in loops:
        if loop.group not in task.objects:
            hint = nearest(loop.group, task.objects)
            raise task.error(loop.keys, f"unknown group of objects '{loop.group}'", instead=hint, at_key=True)
        if loop.variable in scope:
            what = f"the loop variable '{loop.variable}' is already the name of something"
            instead = f"rename it; taken: {', '.join(sorted(scope))}"
            raise task.error(loop.keys, what, instead=instead, at_key=True)
        scope[loop.variable] = "object"
    return scope


_A = {
    "object": "an object",
    "objects": "a group of objects",
    "fixture": "a fixture",
    "region": "a region",
    "text": "a text",
}


def _needed(mark: Reference) -> str:
    return " or ".join(_A[kind] for kind in mark.kinds)


def _check_kind(expression: Expression, mark: Reference, scope: Mapping[str, str], task: Task) -> None:
    kind = _kind(expression, scope, task)
    if kind is None and "fixture" not in mark.kinds:
        known = [name for name, thing in scope.items() if thing.removesuffix("s") in mark.kinds]
        name = sorted(names_in(expression))[0]
        raise InputError(f"unknown {' or '.join(mark.kinds)} '{name}'", instead=nearest(name, known))
    if kind == "objects" and mark.many and isinstance(expression, Name):
        return
    if kind == "objects" and "object" in mark.kinds and isinstance(expression, Name):
        name = expression.name
        raise InputError(f"'{name}' is a group of objects, one is needed", instead=f"loop with 'for item in {name}:'")
    if kind is not None and kind not in mark.kinds:
        raise InputError(f"this names {_A[kind]}, {_needed(mark)} is needed")


def _kind(expression: Expression, scope: Mapping[str, str], task: Task) -> str | None:
    """The kind of thing a reference leads to; None where only the scene can tell."""
    match expression:
        case Name(name):
            return scope.get(name)
        case Attribute(base, name):
            if name not in ATTRIBUTES:
                raise InputError(f"unknown attribute '{name}'", instead=nearest(name, ATTRIBUTES))
            kind = _kind(base, scope, task)
            if kind is None and isinstance(base, Name):
                raise InputError(f"unknown name '{base.name}'", instead=nearest(base.name, scope))
            if kind in ("objects", "region", "text"):
                raise InputError(f"'.{name}' needs one object before it, this is {_A[kind]}")
            return "text"
        case Member(base, index):
            if not isinstance(index, (str, int)):
                _check_index(index, scope, task)
            if isinstance(base, Name) and base.name in task.objects:
                certain = task.objects[base.name].count[0]
                if not isinstance(index, int) or index >= certain:
                    what = f"'{base.name}' surely has only {certain} objects"
                    raise InputError(what, instead=f"write {base.name}[0], or loop with 'for item in {base.name}:'")
                return "object"
            if _kind(base, scope, task) is not None:
                raise InputError("brackets choose from a group, this is one thing")
            return None


def _check_index(index: Expression, scope: Mapping[str, str], task: Task) -> None:
    kind = _kind(index, scope, task)
    if kind is None:
        name = sorted(names_in(index))[0]
        raise InputError(f"unknown name '{name}'", instead=nearest(name, scope))
    if kind != "text":
        raise InputError("a class is needed inside the brackets", instead="write for example [item.class]")


def _check_instructions(task: Task) -> None:
    for index, text in enumerate(task.instructions):
        keys = ("instructions", index)
        try:
            fields = [part for part in string.Formatter().parse(text) if part[1] is not None]
        except ValueError as error:
            raise task.error(keys, f"malformed wording: {error}", instead="write {{ and }} for braces") from None
        for _, field, form, conversion in fields:
            if field not in task.objects or form or conversion:
                hint = nearest(field or "", task.objects)
                raise task.error(keys, f"unknown field '{{{field}}}'", instead=hint)


def _check_region(task: Task, name: str, stage: Stage) -> None:
    region = task.regions[name]
    if region.on not in stage.surfaces:
        hint = nearest(region.on, stage.surfaces)
        raise task.error(("regions", name, "on"), f"the scene has no surface '{region.on}'", instead=hint)
    surface = stage.surfaces[region.on]
    for axis, label in enumerate("xy"):
        low, high = (region.center[axis] + sign * region.size[axis] / 2 for sign in (-1, 1))
        if low < surface.lower[axis] - 1e-6 or high > surface.upper[axis] + 1e-6:
            what = f"{label} from {low:g} to {high:g} m reaches beyond '{region.on}'"
            instead = f"keep it within {surface.lower[axis]:g} to {surface.upper[axis]:g} m"
            raise task.error(("regions", name), what, instead=instead)


def _check_objects(task: Task, name: str, stage: Stage, libraries: Mapping[str, Library]) -> None:
    group, keys = task.objects[name], ("objects", name)
    if name in stage.fixtures or name in {fixture.group for fixture in stage.fixtures.values()}:
        raise task.error(keys, f"'{name}' also names something in the scene", instead="rename the group")
    if group.library not in libraries:
        hint = nearest(group.library, libraries)
        raise task.error((*keys, "library"), f"unknown object library '{group.library}'", instead=hint)
    known = libraries[group.library].kinds
    for index, kind in enumerate(() if group.kinds == "all" else group.kinds):
        if kind not in known:
            raise task.error((*keys, "kinds", index), f"unknown kind '{kind}'", instead=nearest(kind, known))
    if group.distinct and group.count[1] > len(known):
        what = f"impossible count: up to {group.count[1]} distinct kinds, '{group.library}' has {len(known)}"
        raise task.error((*keys, "count"), what)


@dataclass(frozen=True)
class _Sample:
    """An object as it might be drawn."""

    name: str
    group: str
    kind: str
    object_class: str


def _samples(task: Task, name: str, libraries: Mapping[str, Library]) -> list[_Sample]:
    """One object of every kind that the group may draw."""
    group = task.objects[name]
    library = libraries[group.library]
    kinds = library.kinds if group.kinds == "all" else group.kinds
    return [_Sample(f"{name}_0", name, kind, library.kind(kind).object_class) for kind in kinds]


def _check_fixtures(task: Task, steps: Steps, stage: Stage, libraries: Mapping[str, Library]) -> None:
    """Resolve every reference for every kind of object that may be drawn."""
    samples = {name: _samples(task, name, libraries) for name in task.objects}
    scene = environment(fixtures=stage.fixtures.values(), regions=task.regions)
    for step, loops in walk(steps):
        groups = {name: name for name in task.objects} | {loop.variable: loop.group for loop in loops}
        for keys, mark, expression in _references(task, step):
            drawn = sorted(names_in(expression) & groups.keys())
            for chosen in itertools.product(*(samples[groups[name]] for name in drawn)):
                things = {name: _stand_in(task, name, sample) for name, sample in zip(drawn, chosen, strict=True)}
                _check_leads(task, keys, mark, expression, scene | things)


def _stand_in(task: Task, name: str, sample: _Sample) -> Any:
    return Group(name, (sample,) * task.objects[name].count[1]) if name in task.objects else sample


def _check_leads(task: Task, keys: Keys, mark: Reference, expression: Expression, names: Mapping[str, Any]) -> None:
    try:
        thing = evaluate(expression, names)
        if isinstance(thing, Group) and mark.many:
            return
        thing = resolve(expression, names)
    except InputError as error:
        raise task.error(keys, error.what, instead=error.instead) from None
    kind = "object" if isinstance(thing, _Sample) else "region" if isinstance(thing, Place) else "fixture"
    if kind not in mark.kinds:
        raise task.error(keys, f"'{thing.name}' is {_A[kind]}, {_needed(mark)} is needed")
