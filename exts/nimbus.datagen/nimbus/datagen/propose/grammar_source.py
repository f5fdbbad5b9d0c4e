"""Grammar as a source of goal graphs. It repairs refused graphs with another kind, other positions or fewer goals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from nimbus.datagen.errors import InputError
from nimbus.datagen.propose.drawing_weights import DrawingWeights
from nimbus.datagen.propose.goal_graph import Goal, GoalGraph, Thing
from nimbus.datagen.propose.grammar import Vocabulary, draw_graph
from nimbus.datagen.propose.planner import plan_task
from nimbus.datagen.propose.proposals import Trial
from nimbus.datagen.random_streams import generator

RoomCheck: TypeAlias = Callable[[GoalGraph, int, int], bool]
"""Function of a graph, its index and the number of the repair, which returns True if the things fit on the table."""
_KINDS_TRIED = 30
"""Largest number of kinds tried as a replacement for one kind."""


class GrammarSource:
    """Source of the grammar's graphs.

    Args:
        vocabulary: Kinds of things.
        seed: Seed of the proposals.
        robot: Name of the robot.
        scene: Name of the scene.
        families: Names of the families to draw from; all if empty.
        weights: Weights of kinds, relations and lengths, from measured yields.
        has_room: Function that returns True if the things of a graph fit on the table.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        *,
        seed: int,
        robot: str,
        scene: str,
        families: Sequence[str] = (),
        weights: DrawingWeights | None = None,
        has_room: RoomCheck = lambda graph, index, attempt: True,
    ) -> None:
        self._has_room = has_room
        self._vocabulary, self._seed, self._robot, self._scene = vocabulary, seed, robot, scene
        self._families, self._weights = families, weights

    def draw(self, index: int) -> GoalGraph | None:
        """Draw the graph with the given index; return None if it has no goals."""
        graph = draw_graph(
            self._vocabulary,
            seed=self._seed,
            index=index,
            robot=self._robot,
            scene=self._scene,
            families=self._families,
            weights=self._weights,
            has_room=lambda graph: self._has_room(graph, index, 0),
        )
        return graph if graph.goals else None

    def repair(self, trial: Trial, *, index: int, attempt: int) -> GoalGraph | None:
        """Repair a refused graph: use another kind for a thing that the findings name, or drop a goal.

        The kinds of the named thing and of its targets are replaced in turn. After a failure in physics that names no
        thing, the graph is tried once more at other positions.
        """
        rng = generator(self._seed, "propose", index, attempt, "repair")
        graph, text = trial.graph, " ".join(trial.messages())
        named = [one for one in graph.things if one.name in text.replace("_start", "")]
        if named:
            below = [
                graph.thing(goal.target)
                for goal in graph.goals
                if goal.object == named[0].name and goal.relation in ("in", "on")
            ]
            turn = (named[0], *below)
            one = turn[attempt % len(turn)]
            for other in self._with_other_kinds(graph, one, rng) if trial.stage != "pack" else ():
                if self._has_room(other, index, attempt + 1):
                    return other
        if trial.stage == "physics" and attempt == 0:
            return graph
        return _smaller(graph)

    def notes(self) -> tuple[()]:
        """Return no notes, because the grammar has no steps to report."""
        return ()

    def wordings(self, graph: GoalGraph) -> tuple[str, ...]:
        """Return no wordings: the grammar has none."""
        return ()

    def _with_other_kinds(self, graph: GoalGraph, one: Thing, rng: np.random.Generator) -> Iterator[GoalGraph]:
        """Yield graphs in which a thing has another kind and for which a plan exists."""
        catalogue = self._vocabulary.catalogue
        kind = catalogue[one.kind]
        items = self._vocabulary.items
        alike = items if one.kind in items else [k for k in catalogue if catalogue[k].object_class == kind.object_class]
        others = [name for name in alike if name != one.kind]
        for index in rng.permutation(len(others))[:_KINDS_TRIED]:
            things = tuple(replace(each, kind=others[index]) if each is one else each for each in graph.things)
            changed = replace(graph, things=things)
            try:
                plan_task(changed, catalogue)
            except InputError:
                continue
            yield changed


def _smaller(graph: GoalGraph) -> GoalGraph | None:
    """Return the graph without a distractor, or without its last goal; None if it has a single goal."""
    if others := [one for one in graph.things if one.name not in graph.concerned]:
        return replace(graph, things=tuple(one for one in graph.things if one is not others[0]))
    if len(graph.goals) == 1:
        return None
    fewer = replace(graph, goals=tuple(_without_last(graph.goals)))
    return replace(fewer, things=tuple(one for one in graph.things if one.name in fewer.concerned))


def _without_last(goals: Sequence[Goal]) -> Iterator[Goal]:
    """Yield all goals but the last, and without those that close a thing into which nothing is put any more."""
    left = list(goals[:-1])
    for goal in left:
        opened = any(other.target == goal.object for other in left)
        if goal.relation != "closed" or opened or not any(other.target == goal.object for other in goals):
            yield goal
