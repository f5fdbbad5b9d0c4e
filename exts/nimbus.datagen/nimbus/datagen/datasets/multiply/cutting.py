"""Cutting of all demonstrations of a task into the same sequence of subtasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import median
from typing import TypeVar

import numpy as np

from nimbus.datagen.datasets.multiply.axes import agree_on_axes
from nimbus.datagen.datasets.multiply.contact_rows import ContactRows, find_contact_rows
from nimbus.datagen.datasets.multiply.cuts import SubtaskCut, find_cuts
from nimbus.datagen.datasets.multiply.cuts_file import CutsScope, DemonstrationCuts, parse_cuts
from nimbus.datagen.datasets.multiply.source import Demonstration
from nimbus.datagen.datasets.multiply.subtasks import Subtask, make_subtasks
from nimbus.datagen.episode.layout import PhysicalLayout, check_object_count
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.strict_yaml import Document
from nimbus.datagen.robots.robot import Robot
from nimbus.datagen.simulate.newton import NewtonSimulation
from nimbus.datagen.tasks.checks.references import references_of
from nimbus.datagen.tasks.references import GroupRef, RegionRef, build_environment, evaluate
from nimbus.datagen.tasks.steps import Scope, Step, Steps, stored_choices
from nimbus.datagen.tasks.task import Task
from nimbus.datagen.usd.stage import StageInfo

Key = tuple[tuple[str, ...], int]
"""Arms of a subtask, and its index among the subtasks of the same arms."""
_Part = TypeVar("_Part", bound=SubtaskCut)
_SAME_VERB = {"work on": "move"}
"""Verbs that count as another verb when demonstrations are compared: a drawer may be pulled with all fingers on the
handle, or with one."""


@dataclass(frozen=True, kw_only=True)
class CutDemonstrations:
    """Demonstrations of the same procedure, cut into subtasks."""

    columns: Mapping[Key, tuple[Subtask, ...]]
    """Subtasks in order, each with one take per used demonstration."""
    used: tuple[str, ...]
    """Names of the demonstrations that are used."""
    left_out: Mapping[str, str]
    """Reasons why demonstrations are not used, by their name."""
    cuts: Mapping[str, DemonstrationCuts]
    """Cuts of each demonstration, by its name."""


class Cutter:
    """Finds the contacts and the subtasks of demonstrations, one after another.

    Args:
        layout: Layout of the first demonstration, which determines the bodies of the scene.
        task: Task of all demonstrations.
        stage: Scene of the task.
        robot: Robot of the task.

    Raises:
        InputError: The layout has too many objects.
    """

    def __init__(self, layout: PhysicalLayout, *, task: Task, stage: StageInfo, robot: Robot) -> None:
        self._task, self._stage, self._robot = task, stage, robot
        check_object_count(layout, where=task.name)
        self._simulation = NewtonSimulation(stage, robot, rate=task.rate)
        self._simulation.load(layout)

    @cached_property
    def scope(self) -> CutsScope:
        """Names to which cuts may refer."""
        fixtures = frozenset(self._stage.fixtures.keys() & set(self._simulation.body_names))
        arms = tuple(self._robot.arm_names)
        return CutsScope(task=self._task.name, robot=self._robot.name, arms=arms, fixtures=fixtures)

    def contacts(self, demonstration: Demonstration) -> tuple[Demonstration, ContactRows]:
        """Return a demonstration with the poses of fixtures, and its contacts.

        Raises:
            InputError: The demonstration is too short, or contains invalid numbers.
        """
        demonstration.check()
        rows, simulation = find_contact_rows(demonstration, self._simulation), self._simulation
        count = demonstration.row_count
        still = {name: np.tile(simulation.body_pose(name), (count, 1, 1)) for name in sorted(self.scope.fixtures)}
        # Third-party sets contain no fixtures.
        return replace(demonstration, bodies=still | dict(demonstration.bodies)), rows

    def find(self, demonstration: Demonstration, rows: ContactRows) -> tuple[SubtaskCut, ...]:
        """Find the subtasks of a demonstration from its contacts; see :func:`find_cuts`."""
        related = find_related(self._task, demonstration.layout, self._stage)
        return find_cuts(demonstration, rows, related=related)


def cut_all(
    demonstrations: Sequence[Demonstration],
    *,
    task: Task,
    stage: StageInfo,
    robot: Robot,
    cuts_file: Document | None = None,
) -> CutDemonstrations:
    """Cut demonstrations into subtasks, and keep the demonstrations with the most common sequence.

    Args:
        demonstrations: Demonstrations of the task.
        task: Task of all demonstrations.
        stage: Scene of the task.
        robot: Robot of the task.
        cuts_file: Parsed cuts file, which replaces the subtasks found from contacts.

    Raises:
        InputError: The cuts file does not fit, or no demonstration can be used; the message gives the reason for the
            first one.
    """
    if not demonstrations:
        raise InputError("there are no demonstrations", where="DEMOS", instead="give a dataset with episodes")
    cutter = Cutter(demonstrations[0].layout, task=task, stage=stage, robot=robot)
    given = None if cuts_file is None else parse_cuts(cuts_file, demonstrations, cutter.scope)
    cut: dict[str, list[Subtask]] = {}
    cuts: dict[str, DemonstrationCuts] = {}
    left_out: dict[str, str] = {}
    first: InputError | None = None
    for one in demonstrations:
        if given is not None and (one.name not in given or not given[one.name].use):
            left_out[one.name] = "the cuts file does not use it"
            continue
        try:
            whole, rows = cutter.contacts(one)
            found = given[one.name].cuts if given is not None else cutter.find(whole, rows)
            cut[one.name] = make_subtasks(whole, rows, found)
            cuts[one.name] = DemonstrationCuts(cuts=found)
        except InputError as error:
            left_out[one.name] = error.what
            cuts[one.name] = DemonstrationCuts(cuts=(), use=False, reason=error.what)
            first = first or error
    if first and not cut:
        raise first
    uncommon = find_uncommon(cut)
    used = tuple(name for name in cut if name not in uncommon)
    left_out |= uncommon
    numbered = {name: _numbered(cut[name]) for name in used}
    keys = sorted(numbered[used[0]])
    columns = {key: agree_on_axes(tuple(numbered[name][key] for name in used)) for key in keys}
    order = sorted(columns, key=lambda key: (median(one.start for one in columns[key]), key))
    return CutDemonstrations(columns={key: columns[key] for key in order}, used=used, left_out=left_out, cuts=cuts)


def find_uncommon(cuts: Mapping[str, Sequence[SubtaskCut]]) -> dict[str, str]:
    """Return the demonstrations that do not have the most common sequence of subtasks, with this reason.

    Args:
        cuts: Subtasks of demonstrations, by their name; of equally common sequences, the first counts.
    """
    sequences = {name: _sequence(parts) for name, parts in cuts.items()}
    usual = Counter(sequences.values()).most_common(1)[0][0] if sequences else None
    return {
        name: f"has another sequence: {describe(cuts[name]) or 'no subtasks'}"
        for name, sequence in sequences.items()
        if sequence != usual
    }


def _sequence(parts: Sequence[SubtaskCut]) -> Hashable:
    """Return the properties of subtasks that are equal in demonstrations of the same procedure."""
    return tuple((key, one.frame, _SAME_VERB.get(one.verb, one.verb)) for key, one in sorted(_numbered(parts).items()))


def describe(subtasks: Iterable[SubtaskCut]) -> str:
    """Describe subtasks in order, such as ``take peg_0, put board_0``."""
    ordered = sorted(subtasks, key=lambda one: one.start)
    return ", ".join(f"{one.verb} {one.frame or 'in the world'}" for one in ordered)


def _numbered(subtasks: Sequence[_Part]) -> dict[Key, _Part]:
    counts: Counter[tuple[str, ...]] = Counter()
    numbered: dict[Key, _Part] = {}
    for one in subtasks:
        numbered[one.arms, counts[one.arms]] = one
        counts[one.arms] += 1
    return numbered


def find_related(task: Task, layout: PhysicalLayout, stage: StageInfo) -> dict[str, list[str]]:
    """Return, for each object, the other objects that the conditions of success relate to it; regions are omitted."""
    names = build_environment(objects=layout.objects, fixtures=stage.fixtures.values(), regions=task.regions)
    objects = {item.name for item in layout.objects}
    related: dict[str, list[str]] = {name: [] for name in objects}
    for step, scope in _conditions(task.success, Scope(names, stored_choices(layout.drawn))):
        things: list[str] = []
        for _, _, expression in references_of(task, step):
            found = evaluate(expression, scope.names)
            members = found.members if isinstance(found, GroupRef) else (found,)
            things += [one.name for one in members if not isinstance(one, (RegionRef, str))]
        for name in objects.intersection(things):
            related[name] += [other for other in things if other != name and other not in related[name]]
    return related


def _conditions(steps: Steps, scope: Scope) -> Iterator[tuple[Step, Scope]]:
    """Yield every condition with its scope; a loop yields it once per member."""
    for step in steps:
        if isinstance(step, Step):
            yield step, scope
            continue
        if (draw := step.draws(scope)) and draw[0] not in scope.choices:
            continue  # third-party datasets do not record drawn values
        for inner in step.scopes(scope):
            for block in step.blocks():
                yield from _conditions(block, inner)
