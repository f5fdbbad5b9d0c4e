"""Check that names in a task exist: within its file, and in the scene, the robot and the object libraries."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from nimbus.datagen.errors import suggest
from nimbus.datagen.tasks.checks.contradictions import check_contradictions
from nimbus.datagen.tasks.checks.object_kinds import check_kinds
from nimbus.datagen.tasks.checks.references import check_references
from nimbus.datagen.tasks.control_flow.members import chosen_names
from nimbus.datagen.tasks.steps import composites, walk
from nimbus.datagen.tasks.task_file import wording_fields

if TYPE_CHECKING:
    from nimbus.datagen.tasks.task import Task


class SceneStage(Protocol):
    """Part of a scene that a check needs; ``usd.stage.StageInfo`` implements it."""

    @property
    def fixtures(self) -> Mapping[str, Any]:
        """Fixtures by name; each has ``name``, ``group`` and ``object_class``."""
        ...

    @property
    def surfaces(self) -> Mapping[str, Any]:
        """Surfaces by name; each has ``lower`` and ``upper`` corners in the world frame [m]."""
        ...


class KindLibrary(Protocol):
    """Part of an object library that a check needs."""

    @property
    def kinds(self) -> Collection[str]:
        """Names of its kinds."""
        ...

    def kind(self, name: str) -> Any:
        """Return a kind's record, which has ``object_class``."""
        ...


_ARM_FIELDS = ("arm", "arms", "giver", "receiver")
"""Fields of skills and conditions that name arms of the robot."""


def check_names(task: Task) -> None:
    """Check names, references, loops and wordings within the file.

    Raises:
        InputError: The first error, with its location in the file.
    """
    for name in task.regions:
        if name in task.objects:
            raise task.error(("regions", name), f"'{name}' also names a group of objects", instead="rename one")
    for index, (name, group) in enumerate(task.objects.items()):
        if group.region not in (known := [*task.regions, *list(task.objects)[:index]]):
            hint = suggest(group.region, known)
            raise task.error(("objects", name, "region"), f"unknown region '{group.region}'", instead=hint)
    check_references(task)
    check_contradictions(task)
    _check_instructions(task)


def check_task(
    task: Task,
    stage: SceneStage,
    links: Collection[str],
    libraries: Mapping[str, KindLibrary],
    *,
    arms: Collection[str] = ("arm",),
    has_base: bool = False,
) -> None:
    """Check a task against its scene, robot and libraries.

    Args:
        task: The task.
        stage: Scene of the task.
        links: Names of the robot's links that can carry a camera.
        libraries: Object libraries by the name that the task gives them.
        arms: Names of the robot's arms.
        has_base: True for a robot whose base drives.

    Raises:
        InputError: The first error, with its location in the file.
    """
    _check_arms(task, arms, has_base=has_base)
    for name in task.regions:
        _check_region(task, name, stage)
        if name in stage.fixtures:
            raise task.error(("regions", name), f"'{name}' also names a fixture of the scene", instead="rename it")
    for name in task.objects:
        _check_objects(task, name, stage, libraries)
    for name, camera in task.cameras.items():
        if camera.mount and camera.mount not in (*links, "hand"):
            hint = suggest(camera.mount, (*links, "hand"))
            raise task.error(("cameras", name, "mount"), f"the robot has no link '{camera.mount}'", instead=hint)
        if not camera.mount and (inside := _solid_around(camera.position, stage)):
            top = stage.surfaces[inside].upper[2]
            instead = f"write a height above {round(top, 2) + 0.0:g} m"
            raise task.error(("cameras", name, "position"), f"the camera is inside '{inside}'", instead=instead)
    for name, settings in task.randomize.items():
        check = getattr(settings, "complaint", None)
        if found := check and check(task.regions, libraries):
            field, what, instead = found
            raise task.error(("randomize", name, field), what, instead=instead)
    check_kinds(task, task.steps, stage, libraries)
    check_kinds(task, task.success, stage, libraries)


def _solid_around(point: Sequence[float], stage: SceneStage) -> str:
    """Return the surface that contains a point; empty if none does. A camera inside a surface would see nothing."""
    for name, surface in stage.surfaces.items():
        if all(low < value < high for low, value, high in zip(surface.lower, point, surface.upper, strict=True)):
            return name
    return ""


def _check_arms(task: Task, arms: Collection[str], *, has_base: bool) -> None:
    instead = "leave it out: the robot has one arm" if len(arms) == 1 else f"known: {', '.join(arms)}"
    for composite in composites(task.steps):
        for arm in composite.arms:
            if arm not in arms:
                raise task.error((*composite.keys, arm), f"the robot has no arm '{arm}'", instead=instead, at_key=True)
    for step, _ in (*walk(task.steps), *walk(task.success)):
        needs = getattr(step.statement, "needs", ())
        if "moving_base" in needs and not has_base:
            what = f"'{step.name}' needs a robot whose base drives"
            raise task.error(step.keys, what, instead="name one with a 'base', such as tiago_base")
        if "two_arms" in needs and len(arms) == 1:
            what = f"'{step.name}' needs two arms, and the robot has one"
            raise task.error(step.keys, what, instead="name a robot with two arms, such as dual_panda")
        for field in _ARM_FIELDS:
            named = getattr(step.statement, field, None)
            for arm in named if isinstance(named, tuple) else (named,):
                if isinstance(arm, str) and arm not in arms:
                    raise task.error((*step.keys, field), f"the robot has no arm '{arm}'", instead=instead)


def _check_instructions(task: Task) -> None:
    known = (*task.objects, *chosen_names((*task.steps, *task.success)))
    for index, text in enumerate(task.instructions):
        keys = ("instructions", index)
        if not text.strip():
            raise task.error(keys, "an empty wording", instead="write the task of the robot in a sentence")
        try:
            fields = wording_fields(text)
        except ValueError as error:
            raise task.error(keys, f"malformed wording: {error}", instead="write {{ and }} for braces") from None
        for field in fields:
            if field.name not in known:
                raise task.error(keys, f"unknown field '{field.text}'", instead=suggest(field.name, known))
            if not field.is_plain:
                what = f"'{field.text}' is more than a name in braces"
                raise task.error(keys, what, instead=f"write {{{field.name}}}")


def _check_region(task: Task, name: str, stage: SceneStage) -> None:
    region = task.regions[name]
    if region.on not in stage.surfaces:
        hint = suggest(region.on, stage.surfaces)
        raise task.error(("regions", name, "on"), f"the scene has no surface '{region.on}'", instead=hint)
    surface = stage.surfaces[region.on]
    for axis, label in enumerate("xy"):
        low, high = (region.center[axis] + sign * region.size[axis] / 2 for sign in (-1, 1))
        if low < surface.lower[axis] - 1e-6 or high > surface.upper[axis] + 1e-6:
            what = f"{label} from {low:g} to {high:g} m reaches beyond '{region.on}'"
            instead = f"keep it within {surface.lower[axis]:g} to {surface.upper[axis]:g} m"
            raise task.error(("regions", name), what, instead=instead)


def _check_objects(task: Task, name: str, stage: SceneStage, libraries: Mapping[str, KindLibrary]) -> None:
    group, keys = task.objects[name], ("objects", name)
    if name in stage.fixtures or name in {fixture.group for fixture in stage.fixtures.values()}:
        raise task.error(keys, f"'{name}' also names something in the scene", instead="rename the group")
    if group.library not in libraries:
        hint = suggest(group.library, libraries)
        raise task.error((*keys, "library"), f"unknown object library '{group.library}'", instead=hint)
    known = libraries[group.library].kinds
    for index, kind in enumerate(() if group.kinds == "all" else group.kinds):
        if kind not in known:
            raise task.error((*keys, "kinds", index), f"unknown kind '{kind}'", instead=suggest(kind, known))
    if group.distinct and group.count[1] > len(known):
        what = f"impossible count: up to {group.count[1]} distinct kinds, '{group.library}' has {len(known)}"
        raise task.error((*keys, "count"), what)
