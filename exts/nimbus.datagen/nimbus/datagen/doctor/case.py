"""Input of the checks: a loaded task, its assets, and layouts of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from nimbus.datagen.errors import Diagnostic, Severity
from nimbus.datagen.randomize.tabletop import draw_physical
from nimbus.datagen.simulate.newton import NewtonSimulation
from nimbus.datagen.tasks.references import (
    GroupRef,
    MemberRef,
    NameRef,
    build_environment,
    evaluate,
    names_in,
    parse_reference,
)
from nimbus.datagen.tasks.statements import Skill
from nimbus.datagen.tasks.steps import Composite, Step, walk

if TYPE_CHECKING:
    from nimbus.datagen.episode.layout import PhysicalLayout
    from nimbus.datagen.files.strict_yaml import Keys
    from nimbus.datagen.objects.library import ObjectLibrary
    from nimbus.datagen.tasks.scene_assets import SceneAssets
    from nimbus.datagen.tasks.task import Task

_MOST_KINDS = 100
"""Largest number of kinds of a group that are checked."""
LAYOUTS = 8
"""Number of layouts drawn for the checks, and largest number attempted."""


def make_finding(check: str, task: Task, keys: Keys, what: str, *, instead: str, certain: bool = False) -> Diagnostic:
    """Make a diagnostic about a field of a task file; ``certain`` means that no episode can succeed."""
    severity = Severity.FAIL if certain else Severity.WARN
    return Diagnostic(check=check, severity=severity, where=task.where(*keys), what=what, instead=instead)


@dataclass(frozen=True, kw_only=True)
class CameraView:
    """Sizes of the manipulated things in a camera's images, and things out of view."""

    widths: dict[str, tuple[float, float]]
    """Median and smallest width of a group's objects [px]; for a wrist camera, when they are between the fingers."""
    out_of_view: tuple[str, ...]
    """Names of the groups, fixtures, regions, handles and grippers that are out of view. A wrist camera may also list
    the place between the fingers.
    """


@dataclass(frozen=True)
class Case:
    """A task under examination."""

    task: Task
    assets: SceneAssets
    seed: int = 0
    grasps: dict[str, dict[str, int]] = field(default_factory=dict)
    """Number of grasps of each variant (``can 3``) by group; filled by the checks."""
    seen: dict[str, dict[str, float]] = field(default_factory=dict)
    """Fraction of each region that a fixed camera sees, by camera."""
    views: dict[str, CameraView] = field(default_factory=dict)
    """Sizes of things in the images of each camera, by its name."""

    @cached_property
    def layouts(self) -> tuple[PhysicalLayout, ...]:
        """First physical layouts of a run."""
        return tuple(draw_physical(self.task, self.assets, seed=self.seed, index=index) for index in range(LAYOUTS))

    @cached_property
    def simulation(self) -> NewtonSimulation:
        """Simulation of the task's scene and robot; not loaded yet."""
        return NewtonSimulation(self.assets.stage, self.assets.robot, rate=self.task.rate)

    def library(self, group: str) -> ObjectLibrary:
        """Return the library of a group."""
        return self.assets.libraries[self.task.objects[group].library]

    def kinds(self, group: str) -> tuple[str, ...]:
        """Return the kinds that a group may draw; if there are very many, an evenly spread subset."""
        kinds = self.task.objects[group].kinds
        every = self.library(group).kinds if kinds == "all" else kinds
        return every[:: -(-len(every) // _MOST_KINDS)]

    def scales(self, group: str) -> tuple[float, ...]:
        """Return the smallest and the largest scale that a group may draw."""
        scale = self.task.objects[group].scale
        return (1.0,) if scale is None else tuple(dict.fromkeys(scale))

    def picks(self) -> Iterator[tuple[Step, str]]:
        """Yield every step that grasps an object, with the object's group."""
        for step, loops in walk(self.task.steps):
            if isinstance(step.statement, Skill) and step.statement.hand == "takes":
                for group in self.groups(step.target, loops):
                    yield step, group

    def groups(self, text: str, loops: tuple[Composite, ...]) -> tuple[str, ...]:
        """Return the groups of objects that a reference starts with; empty for a fixture or a region."""
        named = {name: name for name in self.task.objects} | {loop.variable: loop.group for loop in loops}
        expression = parse_reference(text)
        base = expression
        while not isinstance(base, NameRef):
            base = base.base
        return (named[base.name],) if base.name in named else ()

    def fixtures(self, text: str, loops: tuple[Composite, ...]) -> tuple[str, ...]:
        """Return the names of the fixtures that a reference may lead to."""
        stage = self.assets.stage.fixtures
        expression = parse_reference(text)
        if isinstance(expression, NameRef):
            return (expression.name,) if expression.name in stage else ()
        scene = build_environment(fixtures=stage.values(), regions=self.task.regions)
        if not isinstance(expression, MemberRef) or not isinstance(expression.base, NameRef):
            return ()
        group = scene.get(expression.base.name)
        if not isinstance(group, GroupRef):
            return ()
        if names_in(expression.index) if not isinstance(expression.index, str | int) else ():
            return tuple(member.name for member in group.members)
        return (evaluate(expression, scene).name,)
