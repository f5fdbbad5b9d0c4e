"""Goal graph: the things of a task, and the relations between them that must hold at the end.

A graph has no steps, coordinates or conditions; the planner adds them. Graphs are drawn by the generator, or parsed
from the replies of language models. Two graphs with the same canonical form are the same task.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any

from nimbus.datagen.errors import InputError, suggest

PLACES = ("", "left", "right", "middle", "front", "back")
"""Parts of the work surface as seen by the robot, which looks along x; front is nearest to it. An empty text means
anywhere.
"""
STATES = ("", "upright", "lying", "open", "closed")
"""States of a thing at the start: its rest pose or its joint position. An empty text means the usual state of its
kind.
"""
BETWEEN = ("in", "on", "beside", "left_of", "right_of", "in_front_of", "behind", "poured_into", "inserted", "hung")
"""Relations between a thing and a ``target``. A stack is a chain of ``on``. For ``poured_into``, the things that
start inside the object are poured."""
ALONE = ("open", "closed", "turned", "pressed", "inverted", "held")
"""Relations of a single thing; ``target`` is empty."""
RELATIONS = (*BETWEEN, "at", *ALONE)
"""All relations; the target of ``at`` is a part of the work surface."""
MOST_GOALS = 8
MOST_THINGS = 12
MOST_COUNT = 6
"""Largest number of objects in one thing."""
_DIRECTED = frozenset({"in", "on", "inserted", "hung"})
"""Relations of support: a thing must not support itself, even through other things."""
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


@dataclass(frozen=True)
class Thing:
    """One object on the table, or several objects of a kind that share their goals."""

    name: str
    kind: str
    """Library and kind, such as ``kitchen.cup`` or ``blocks.red_cube``."""
    place: str = ""
    """Part of the work surface on which it starts, one of :data:`PLACES`."""
    inside: str = ""
    """Name of the thing in which it starts; empty if it starts on the table."""
    count: int = 1
    state: str = ""
    """State at the start, one of :data:`STATES`."""


@dataclass(frozen=True)
class Goal:
    """Relation that must hold at the end."""

    relation: str
    object: str
    """Name of a thing; if the thing has several objects, the relation must hold for each."""
    target: str = ""
    """Name of a thing, a part of the work surface for ``at``, or empty for :data:`ALONE`."""


@dataclass(frozen=True)
class GoalGraph:
    """Task without steps: robot, scene, things, and goals in any order."""

    robot: str
    scene: str
    things: tuple[Thing, ...]
    goals: tuple[Goal, ...]

    def thing(self, name: str) -> Thing:
        """Return the thing with the given name."""
        return next(one for one in self.things if one.name == name)

    @property
    def concerned(self) -> frozenset[str]:
        """Names of things in goals, and of things that start inside those; all others are distractors."""
        names = {name for goal in self.goals for name in (goal.object, goal.target)}
        return frozenset(one.name for one in self.things if one.name in names or one.inside in names)

    @property
    def skeleton(self) -> tuple[str, ...]:
        """Sorted relations of the goals, with repetitions.

        Graphs with equal skeletons differ only in their things.
        """
        return tuple(sorted(goal.relation for goal in self.goals))

    def canonical(self) -> str:
        """Return a digest that is equal for equal tasks.

        Names, order, starting positions and distractors do not matter. Labels of things are refined with the labels of
        their neighbors, in as many rounds as there are things (Weisfeiler and Leman).
        """
        concerned = self.concerned
        things = [one for one in self.things if one.name in concerned]
        colors = {one.name: f"{one.kind} {one.count} {one.state}" for one in things}
        links = [(goal.relation, goal.object, goal.target) for goal in self.goals]
        links += [("inside", one.name, one.inside) for one in things if one.inside]
        for _ in things:
            around: dict[str, list[str]] = {name: [] for name in colors}
            for relation, first, second in links:
                around[first].append(f"{relation}> {colors.get(second, second)}")
                if second in around:
                    around[second].append(f"{relation}< {colors[first]}")
            colors = {name: _digest([colors[name], *sorted(near)]) for name, near in around.items()}
        return _digest([self.robot, self.scene, *sorted(colors.values())])

    def check(self, *, where: str = "goals") -> None:
        """Check names, numbers, relations and order, as far as possible without the catalogue of kinds.

        Args:
            where: Location of the graph, for the error.

        Raises:
            InputError: The graph has a mistake; the first one is reported.
        """
        if not 1 <= len(self.goals) <= MOST_GOALS:
            raise InputError(f"has {len(self.goals)} goals", where=where, instead=f"give 1 to {MOST_GOALS}")
        if not 1 <= len(self.things) <= MOST_THINGS:
            raise InputError(f"has {len(self.things)} things", where=where, instead=f"give 1 to {MOST_THINGS}")
        names = [one.name for one in self.things]
        for index, one in enumerate(self.things):
            _check_thing(one, names[:index], names, where=f"{where}: things[{index}]")
        for index, goal in enumerate(self.goals):
            _check_goal(goal, names, where=f"{where}: goals[{index}]")
            if goal in self.goals[:index]:
                raise InputError("the goal is given twice", where=f"{where}: goals[{index}]", instead="leave it out")
        _check_order(self.goals, where=where)

    def to_plain(self) -> dict[str, Any]:
        """Return the graph as plain data for JSON."""
        return asdict(self)

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> GoalGraph:
        """Build a graph from the result of :meth:`to_plain`; unknown keys are refused."""
        things = tuple(Thing(**entry) for entry in data["things"])
        return cls(data["robot"], data["scene"], things, tuple(Goal(**entry) for entry in data["goals"]))


def _digest(parts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _check_thing(one: Thing, before: list[str], names: list[str], *, where: str) -> None:
    if not _NAME.fullmatch(one.name) or one.name in PLACES:
        instead = "use at most 40 lower-case letters, digits and _, starting with a letter; not the name of a place"
        raise InputError(f"{one.name[:60]!r} cannot be the name of a thing", where=where, instead=instead)
    if one.name in before:
        raise InputError(f"two things are named '{one.name}'", where=where, instead=f"write {one.name}_2")
    if not 1 <= one.count <= MOST_COUNT:
        raise InputError(f"the count is {one.count}", where=where, instead=f"write 1 to {MOST_COUNT}")
    for field, value, known in (("place", one.place, PLACES), ("state", one.state, STATES)):
        if value not in known:
            raise InputError(f"unknown {field} '{value[:60]}'", where=where, instead=suggest(value, known))
    if one.inside and (one.inside not in names or one.inside == one.name):
        others = [name for name in names if name != one.name]
        instead = suggest(one.inside, others) if others else "leave it empty"
        raise InputError(f"it cannot start inside '{one.inside[:60]}'", where=where, instead=instead)


def _check_goal(goal: Goal, names: list[str], *, where: str) -> None:
    if goal.relation not in RELATIONS:
        instead = suggest(goal.relation, RELATIONS)
        raise InputError(f"unknown relation '{goal.relation[:60]}'", where=where, instead=instead)
    if goal.object not in names:
        raise InputError(f"there is no thing '{goal.object[:60]}'", where=where, instead=suggest(goal.object, names))
    if goal.relation in ALONE and goal.target:
        what = f"'{goal.relation}' takes no target, but '{goal.target[:60]}' is given"
        raise InputError(what, where=where, instead="leave the target empty")
    known = PLACES[1:] if goal.relation == "at" else names
    if goal.relation not in ALONE and goal.target not in known:
        what = f"'{goal.relation}' cannot have the target '{goal.target[:60]}'"
        raise InputError(what, where=where, instead=suggest(goal.target, known))
    if goal.object == goal.target:
        raise InputError(f"'{goal.object}' cannot be related to itself", where=where, instead="name another target")


def _check_order(goals: tuple[Goal, ...], *, where: str) -> None:
    """Refuse things that would support themselves, and things with two positions."""
    below: dict[str, set[str]] = {}
    for goal in goals:
        if goal.relation not in _DIRECTED | {"at"}:
            continue
        if goal.object in below:
            what = f"'{goal.object}' cannot be in, on or at two things"
            raise InputError(what, where=where, instead=f"keep one goal of '{goal.object}'")
        below[goal.object] = {goal.target}
    try:
        TopologicalSorter(below).prepare()
    except CycleError as error:
        cycle = " → ".join(error.args[1])
        raise InputError(f"things support each other: {cycle}", where=where, instead="leave one of them out") from None
