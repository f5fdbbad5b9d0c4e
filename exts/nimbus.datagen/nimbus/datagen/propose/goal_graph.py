"""Goal graph: the things of a task, and the relations required between them at its end.

A graph has no steps, coordinates or conditions: the planner adds them. The generator draws graphs, and replies of
language models are parsed into them. Two graphs with one canonical form are the same task.
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
"""Parts of the work surface as seen by the robot, which looks along x; front is nearer to it. Empty for anywhere."""
STATES = ("", "upright", "lying", "open", "closed")
"""States of a thing at the start: its rest pose, or its joint position. Empty for the kind's usual state."""
BETWEEN = ("in", "on", "beside", "left_of", "right_of", "in_front_of", "behind", "poured_into", "inserted", "hung")
"""Relations of a thing to another, the ``target``. A stack is a chain of ``on``. For ``poured_into``, the things
that start inside the object are poured."""
ALONE = ("open", "closed", "turned", "pressed", "inverted", "held")
"""Relations of a single thing; ``target`` is empty."""
RELATIONS = (*BETWEEN, "at", *ALONE)
"""All relations; the target of ``at`` is a part of the work surface."""
MOST_GOALS = 8
MOST_THINGS = 12
MOST_COUNT = 6
"""Largest number of objects of one thing."""
_DIRECTED = frozenset({"in", "on", "inserted", "hung"})
"""Carrying relations, in which a thing must not carry itself, not even through others."""
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


@dataclass(frozen=True)
class Thing:
    """Thing on the table: one object, or several of a kind that share their goals."""

    name: str
    kind: str
    """Library and kind, such as ``kitchen.cup`` or ``blocks.red_cube``."""
    place: str = ""
    """Part of the work surface where it starts, one of :data:`PLACES`."""
    inside: str = ""
    """Name of the thing in which it starts; empty for the table."""
    count: int = 1
    state: str = ""
    """State at the start, one of :data:`STATES`."""


@dataclass(frozen=True)
class Goal:
    """Relation required at the end."""

    relation: str
    object: str
    """Name of a thing; of several objects, it must hold for each."""
    target: str = ""
    """Name of a thing; a place for ``at``; empty for :data:`ALONE`."""


@dataclass(frozen=True)
class GoalGraph:
    """Task without steps: robot and scene by name, things, and goals in any order."""

    robot: str
    scene: str
    things: tuple[Thing, ...]
    goals: tuple[Goal, ...]

    def thing(self, name: str) -> Thing:
        """Return the thing of a name."""
        return next(one for one in self.things if one.name == name)

    @property
    def concerned(self) -> frozenset[str]:
        """Return the names of things in goals, and of things that start inside them; all others are distractors."""
        names = {name for goal in self.goals for name in (goal.object, goal.target)}
        return frozenset(one.name for one in self.things if one.name in names or one.inside in names)

    @property
    def skeleton(self) -> tuple[str, ...]:
        """Return the relations with multiplicity, sorted.

        Graphs with the same relations differ only in their things.
        """
        return tuple(sorted(goal.relation for goal in self.goals))

    def canonical(self) -> str:
        """Digest that is equal for equal tasks: names, order, starting places and distractors have no effect.

        Colors of things are refined by those of their neighbors, once for each thing (Weisfeiler and Leman).
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
        """Check names, numbers, relations and order, as far as possible without information about kinds.

        Args:
            where: Name of the graph's source, for the error.

        Raises:
            InputError: The first mistake.
        """
        if not 1 <= len(self.goals) <= MOST_GOALS:
            raise InputError(f"{len(self.goals)} goals", where=where, instead=f"give 1 to {MOST_GOALS}")
        if not 1 <= len(self.things) <= MOST_THINGS:
            raise InputError(f"{len(self.things)} things", where=where, instead=f"give 1 to {MOST_THINGS}")
        names = [one.name for one in self.things]
        for index, one in enumerate(self.things):
            _check_thing(one, names[:index], names, where=f"{where}: things[{index}]")
        for index, goal in enumerate(self.goals):
            _check_goal(goal, names, where=f"{where}: goals[{index}]")
            if goal in self.goals[:index]:
                raise InputError("the goal is given twice", where=f"{where}: goals[{index}]", instead="leave it out")
        _check_order(self.goals, where=where)

    def to_plain(self) -> dict[str, Any]:
        """Return plain data, for JSON."""
        return asdict(self)

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> GoalGraph:
        """Build a graph from the output of :meth:`to_plain`; refuse unknown keys."""
        things = tuple(Thing(**entry) for entry in data["things"])
        return cls(data["robot"], data["scene"], things, tuple(Goal(**entry) for entry in data["goals"]))


def _digest(parts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _check_thing(one: Thing, before: list[str], names: list[str], *, where: str) -> None:
    if not _NAME.fullmatch(one.name) or one.name in PLACES:
        instead = "write lower-case letters, digits and _, a letter first, at most 40; no name of a place"
        raise InputError(f"{one.name[:60]!r} cannot name a thing", where=where, instead=instead)
    if one.name in before:
        raise InputError(f"two things are named '{one.name}'", where=where, instead=f"write {one.name}_2")
    if not 1 <= one.count <= MOST_COUNT:
        raise InputError(f"a count of {one.count}", where=where, instead=f"write 1 to {MOST_COUNT}")
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
        raise InputError(f"no thing '{goal.object[:60]}'", where=where, instead=suggest(goal.object, names))
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
    """Refuse things that would carry themselves, and a thing with two places."""
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
        raise InputError(f"things carry each other: {cycle}", where=where, instead="leave one of them out") from None
