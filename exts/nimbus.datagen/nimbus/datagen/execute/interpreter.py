"""Interpreter of a task: runs its steps in a workcell and evaluates its conditions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.trajectory import Outcome, Reason
from nimbus.datagen.errors import InputError, suggest
from nimbus.datagen.objects.model import features, known_features
from nimbus.datagen.tasks.plugin_origin import find_user_frame
from nimbus.datagen.tasks.points import is_tool, parse_pose
from nimbus.datagen.tasks.reasons import check_reason
from nimbus.datagen.tasks.references import (
    Expression,
    GroupRef,
    RegionRef,
    build_environment,
    evaluate,
    resolve,
    single,
)
from nimbus.datagen.tasks.statements import GivenUp, SkillFailure, Statement
from nimbus.datagen.tasks.steps import Scope, Step, Steps, stored_choices

if TYPE_CHECKING:
    from nimbus.datagen.episode.layout import PhysicalLayout
    from nimbus.datagen.execute.workcell import SimulatedWorkcell
    from nimbus.datagen.tasks.task import Task
    from nimbus.datagen.tasks.workcell_interface import World

S = TypeVar("S", bound=Statement)

_FINAL = (Reason.PLAN_REJECTED, Reason.UNSTABLE)
"""Failures that no recovery may hide, because the planner or physics is at fault."""


def resolve_point(cell: World, names: Mapping[str, Any], thing: Expression, feature: str) -> FloatArray:
    """Return a point (3,) of a thing in the world frame [m].

    Args:
        cell: The current scene.
        names: Meaning of the task's names.
        thing: Reference to an object, a fixture or a region; ``tool`` is the robot's.
        feature: ``center``, ``top``, or the name of a keypoint, frame or cavity of the object.

    Raises:
        InputError: The thing has no such point.
    """
    if is_tool(thing, names):
        return cell.tool_pose()[:3, 3]
    found = resolve(thing, names)
    if isinstance(found, RegionRef):
        # A region is not a body: its height is that of the surface on which it lies.
        region = cell.regions[found.name]
        return np.array([*region.center, cell.stage.surfaces[region.on].upper[2]])
    low, high = cell.bounds(found.name)
    center = (low + high) / 2
    if feature == "center":
        return center
    if feature == "top":
        return np.array([*center[:2], high[2]])
    points = features(cell.model(found.name)) if found.name in cell.objects else {}
    if feature not in points:
        raise InputError(f"'{found.name}' has no point '{feature}'", instead=suggest(feature, known_features(points)))
    return (cell.pose(found.name) @ np.append(points[feature], 1.0))[:3]


class TaskJudge:
    """Evaluates a task's conditions in a world, independent of the source of commands; it cannot run steps.

    Args:
        world: The current scene.
        scope: Meaning of the task's names.
    """

    def __init__(self, world: World, scope: Scope) -> None:
        self.world, self.scope = world, scope

    def failure(self, conditions: Steps, scope: Scope) -> Outcome | None:
        """Return the first condition that does not hold, with its subject in ``phase``; None when all hold."""
        for condition in conditions:
            # Conditions such as any: and not: evaluate the conditions inside them.
            if not isinstance(condition, Step):
                failure, said = condition.failure(self, scope), ""
            else:
                predicate = self.resolved(condition.statement, scope)
                failure, said = predicate.failure(self.world), f"{condition.name} {_target(predicate)}".strip()
            if failure is not None:
                if isinstance(condition, Step):
                    check_reason(failure.reason, kind="predicate", name=condition.name)
                phase = failure.phase or said
                return Outcome(success=False, phase=phase, reason=failure.reason, detail=failure.detail)
        return None

    def resolved(self, statement: S, scope: Scope) -> S:
        """Resolve a statement's references to names of things, and its points to current coordinates.

        Raises:
            InputError: A reference cannot be resolved.
        """
        found: dict[str, Any] = {}
        for field, mark in statement.references().items():
            if (value := getattr(statement, field)) is not None:
                found[field] = _names(value, scope) if mark.many else resolve(value, scope.names).name
        # Points are evaluated when the step begins, because the things that they refer to may have moved.
        for field in statement.poses():
            if isinstance(value := getattr(statement, field), str):
                place = parse_pose(value).at(partial(resolve_point, self.world, scope.names))
                found[field] = tuple(float(part) for part in place)
        return statement.model_copy(update=found)


class TaskPerformer(TaskJudge):
    """Runs one attempt at a task's steps.

    Args:
        cell: The scene, in the view of the arm that runs the steps.
        scope: Meaning of the task's names.
    """

    done: frozenset[str] = frozenset()
    """Things whose steps are skipped."""

    def __init__(self, cell: SimulatedWorkcell, scope: Scope) -> None:
        super().__init__(cell, scope)
        self.cell = cell

    def of_arm(self, arm: str) -> TaskPerformer:
        """Return this performer in the view of another arm."""
        return TaskPerformer(self.cell.arms[arm], self.scope)

    def do(self, steps: Steps, scope: Scope) -> None:
        """Run steps in sequence.

        Raises:
            SkillFailure: A step fails.
        """
        for step in steps:
            if isinstance(step, Step):
                skill = self.resolved(step.statement, scope)
                with self.cell.step(step.name, _target(skill)):
                    skill.check_gripper(self.cell)
                    try:
                        skill.run(self.cell)
                    except SkillFailure as failure:
                        check_reason(failure.reason, kind="skill", name=step.name, where=find_user_frame(failure))
                        raise
            else:
                step.perform(self, scope)

    def attempt(self, steps: Steps, scope: Scope) -> SkillFailure | None:
        """Run steps; return the failure if a recovery may follow it, or None after success."""
        try:
            self.do(steps, scope)
        # GivenUp means that the budget of plans is used up, and a recovery would need more of them.
        except GivenUp:
            raise
        except SkillFailure as failure:
            if failure.reason in _FINAL:
                raise
            return failure
        return None

    def regain(self) -> None:
        """Prepare the arm to continue from its state after a failure."""
        self.cell.regain()

    def together(self, bodies: Mapping[str, Steps], scope: Scope) -> None:
        """Run the steps of several arms at the same time.

        Raises:
            SkillFailure: The first arm's failure; the other arms are stopped.
        """
        self.cell.together({arm: partial(self.of_arm(arm).do, body, scope) for arm, body in bodies.items()})


def performer(task: Task, cell: SimulatedWorkcell, layout: PhysicalLayout) -> TaskPerformer:
    """Build a performer of a task's steps and conditions.

    Args:
        task: The task.
        cell: Workcell loaded with the layout.
        layout: The physical layout with its drawn values.
    """
    return TaskPerformer(cell, task_scope(task, cell, layout))


def task_scope(task: Task, world: World, layout: PhysicalLayout) -> Scope:
    """Build the scope of a task's steps and conditions in a layout.

    Args:
        task: The task.
        world: World loaded with the layout.
        layout: The physical layout with its drawn choices.
    """
    names = build_environment(objects=layout.objects, fixtures=world.stage.fixtures.values(), regions=task.regions)
    return Scope(names, stored_choices(layout.drawn))


def _names(value: str | tuple[str, ...], scope: Scope) -> tuple[str, ...]:
    if not isinstance(value, str):
        return tuple(name for part in value for name in _names(part, scope))
    found = evaluate(value, scope.names)
    members = found.members if isinstance(found, GroupRef) else (single(found),)
    if any(isinstance(member, str) for member in members):
        raise InputError(f"'{value}' does not name a thing in the scene", instead=suggest(value, scope.names))
    return tuple(member.name for member in members)


def _target(statement: Statement) -> str:
    """Return the name of the only thing that a resolved statement refers to; empty for none or several."""
    value = getattr(statement, statement.main) if statement.main else ""
    alone = value[0] if isinstance(value, tuple) and len(value) == 1 else value
    return alone if isinstance(alone, str) else ""
