"""Grammar of goal graphs, drawn from families of related goals and the kinds of a catalogue.

A family adds things and goals to a draft, or leaves it unchanged if it does not fit. Equal seeds and indices give
equal graphs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from nimbus.datagen.propose.catalogue import KindEntry
from nimbus.datagen.propose.drawing_weights import DrawingWeights
from nimbus.datagen.propose.goal_graph import MOST_GOALS, Goal, GoalGraph, Thing
from nimbus.datagen.propose.traits import HANDLE, TRAITS
from nimbus.datagen.random_streams import generator

VERSION = 5
"""Version of the drawing; raise it when a seed gives different graphs."""
_COUNTS = (0.26, 0.24, 0.18, 0.13, 0.08, 0.05, 0.04, 0.02)
"""Fractions of tasks with 1, 2, 3 … goals."""
_DISTRACTOR = 0.35
"""Fraction of tasks with a thing that must stay in place."""
_MANY = 0.25
"""Fraction of packed things that consist of several objects of a kind."""
_LARGE = 0.11
"""Radius above which a thing counts as large on the table [m]."""
_MOST_LARGE, _MOST_THINGS = 2, 8
_TRIES = 12
"""Number of families tried before a draft is accepted as it is."""
_LONGEST = 0.2
"""Length above which a thing is not picked [m]."""
_LIGHT = 0.4
"""Mass above which a thing slips slowly in the fingers in long tasks [kg]."""
_NO_ITEMS = frozenset({"peg", "board", "ring", "stand", "container", "bead", "ball"})
"""Classes that have their own families of goals."""
_FILL = 0.45
"""Fraction of a cavity's floor that its contents may cover."""
_TOWER = 3


@dataclass(frozen=True)
class Vocabulary:
    """Kinds grouped by their use, from the traits that skills need."""

    catalogue: Mapping[str, KindEntry]

    def _where(self, test: Callable[[KindEntry], bool]) -> tuple[str, ...]:
        return tuple(name for name in self.catalogue if test(self.catalogue[name]))

    @cached_property
    def items(self) -> tuple[str, ...]:
        """Kinds that can be picked."""
        return self._where(
            lambda kind: (
                not TRAITS["graspable"](kind)
                and kind.object_class not in _NO_ITEMS
                and kind.size[0] <= _LONGEST
                and kind.mass <= _LIGHT
                and not (kind.is_hollow and kind.size[1] > _LARGE)
            )
        )

    @cached_property
    def containers(self) -> tuple[str, ...]:
        """Open kinds that can be filled from above."""
        return self._where(
            lambda kind: (
                kind.is_hollow
                and not kind.parts
                and kind.room[1] > 0.12 < kind.room[0]
                and kind.size[2] <= kind.room[2] + HANDLE
            )
        )

    @cached_property
    def supports(self) -> tuple[str, ...]:
        """Kinds with a flat top or a low rim that is wide enough to support another thing."""
        return self._where(
            lambda kind: (
                not kind.is_rolling
                and not kind.parts
                and kind.tilt_margin > _LIGHT
                and (kind.top[1] > 0.035 or (kind.is_hollow and kind.room[2] < 0.045 and kind.room[1] > 0.1))
            )
        )

    def meeting(self, *traits: str) -> tuple[str, ...]:
        """Return the kinds that have all given traits of one argument."""
        return self._where(lambda kind: not any(TRAITS[trait](kind) for trait in traits))


@dataclass
class GraphDraft:
    """Unfinished graph."""

    vocabulary: Vocabulary
    rng: np.random.Generator
    goals_wanted: int
    weights: DrawingWeights = field(default_factory=DrawingWeights)
    things: list[Thing] = field(default_factory=list)
    goals: list[Goal] = field(default_factory=list)

    @property
    def left(self) -> int:
        """Number of goals that may still be added."""
        return self.goals_wanted - len(self.goals)

    def kind(self, name: str) -> KindEntry:
        """Return the catalogue entry of a thing's kind."""
        return self.vocabulary.catalogue[next(one.kind for one in self.things if one.name == name)]

    def choose(self, options: Sequence[str]) -> str:
        """Draw one of several names, kinds by their weights; return an empty string without options."""
        weights = np.array([self.weights.of_kind(name) for name in options])
        if not len(options) or np.all(weights == 1.0):
            return options[int(self.rng.integers(len(options)))] if options else ""
        return options[int(self.rng.choice(len(options), p=weights / weights.sum()))]

    def add(self, kind: str, *, inside: str = "", count: int = 1, state: str = "") -> str:
        """Add a thing and return its name; return an empty string without a kind, or without space on the table."""
        if not kind:
            return ""
        entry = self.vocabulary.catalogue[kind]
        large = sum(self.vocabulary.catalogue[one.kind].radius > _LARGE for one in self.things)
        objects = sum(one.count for one in self.things if not one.inside)
        if not inside and (entry.radius > _LARGE and large >= _MOST_LARGE or objects + count > _MOST_THINGS):
            return ""
        if any(one.kind == kind or (entry.parts and self.vocabulary.catalogue[one.kind].parts) for one in self.things):
            return ""
        base = entry.kind
        taken = {one.name for one in self.things}
        name = next(name for name in (base, *(f"{base}_{number}" for number in range(2, 99))) if name not in taken)
        self.things.append(Thing(name, kind, inside=inside, count=count, state=state))
        return name

    def bare(self, options: Sequence[str]) -> list[str]:
        """Return the single things of some kinds that no goal mentions yet."""
        used = {name for goal in self.goals for name in (goal.object, goal.target)}
        return [one.name for one in self.things if one.kind in options and one.name not in used and one.count == 1]

    def say(self, relation: str, one: str, target: str = "") -> None:
        """Add a goal."""
        self.goals.append(Goal(relation, one, target))


def _pack(draft: GraphDraft) -> bool:
    """Draft goals that put one to three things into a container."""
    container = draft.add(draft.choose(draft.vocabulary.containers))
    return bool(container) and _fill(draft, container)


def _fill(draft: GraphDraft, container: str) -> bool:
    """Draft goals that put things into a container, as long as they fit side by side."""
    room = draft.kind(container)
    space = _FILL * room.room[0] * room.room[1]
    options = [name for name in draft.vocabulary.items if not TRAITS["fits"](draft.vocabulary.catalogue[name], room)]
    before = len(draft.goals)
    for _ in range(min(int(draft.rng.integers(1, 4)), draft.left)):
        kind = draft.vocabulary.catalogue[draft.choose(options)] if options else None
        if kind is None or space < kind.size[0] * kind.size[1]:
            break
        most = min(3, int(space / (kind.size[0] * kind.size[1])))
        count = int(draft.rng.integers(2, most + 1)) if most >= 2 and draft.rng.random() < _MANY else 1
        if not (item := draft.add(kind.name, count=count)):
            break
        space -= count * kind.size[0] * kind.size[1]
        draft.say("in", item, container)
    return len(draft.goals) > before


def _store(draft: GraphDraft) -> bool:
    """Draft goals that put things into a drawer or a lidded box, and possibly close it."""
    rooms = [
        name
        for name in draft.vocabulary.meeting("has_handle")
        if any(part.is_drawer or part.is_lid for part in draft.vocabulary.catalogue[name].parts)
        and draft.vocabulary.catalogue[name].room[0] > 0
    ]
    closes = draft.left >= 2 and draft.rng.random() < 0.5
    place = draft.add(draft.choose(rooms), state="open" if closes and draft.rng.random() < 0.3 else "") if rooms else ""
    if not place:
        return False
    draft.goals_wanted -= closes
    done = _fill(draft, place)
    draft.goals_wanted += closes
    if done and closes:
        draft.say("closed", place)
    return done


def _operate(draft: GraphDraft) -> bool:
    """Draft a goal that opens, closes, turns or presses furniture."""
    relation = draft.choose(("open", "closed", "turned", "pressed"))
    trait = {"open": "has_handle", "closed": "has_lid", "turned": "turnable", "pressed": "pressable"}[relation]
    options = draft.vocabulary.meeting(trait)
    thing = draft.add(draft.choose(options), state="open" if relation == "closed" else "") if options else ""
    if thing:
        draft.say(relation, thing)
    return bool(thing)


def _arrange(draft: GraphDraft) -> bool:
    """Draft a goal that puts a thing beside another one, on a given or on any side."""
    relation = draft.choose(("beside", "left_of", "right_of", "in_front_of", "behind"))
    firm = [name for name in draft.vocabulary.items if not draft.vocabulary.catalogue[name].is_rolling]
    there = draft.bare((*firm, *draft.vocabulary.containers))
    target = draft.choose(there) if there and draft.rng.random() < 0.5 else draft.add(draft.choose(firm))
    one = draft.add(draft.choose([name for name in firm if draft.vocabulary.catalogue[name].tilt_margin > 0.3]))
    if target and one:
        draft.say(relation, one, target)
    return bool(target and one)


def _stack(draft: GraphDraft) -> bool:
    """Draft goals that stack two or three things."""
    below = draft.add(draft.choose(draft.vocabulary.supports))
    height = draft.kind(below).size[2] if below else 0.0
    before = len(draft.goals)
    for _ in range(min(int(draft.rng.integers(1, _TOWER)), draft.left)):
        if not below:
            break
        options = [
            name
            for name in draft.vocabulary.items
            if not TRAITS["carries"](draft.kind(below), draft.vocabulary.catalogue[name])
            and draft.vocabulary.catalogue[name].size[2] + height < 0.16
        ]
        above = draft.add(draft.choose(options)) if options else ""
        if above:
            draft.say("on", above, below)
            height += draft.kind(above).size[2]
        below = above
    return len(draft.goals) > before


def _pour(draft: GraphDraft) -> bool:
    """Draft a goal that pours beads from a cup into a wide container."""
    cup = draft.add(draft.choose(draft.vocabulary.meeting("pourable")), state="upright")
    beads = [name for name, kind in draft.vocabulary.catalogue.items() if kind.object_class == "bead"]
    bowl = draft.add(draft.choose([name for name in draft.vocabulary.meeting("receives")])) if cup else ""
    if not (cup and bowl and beads):
        return False
    draft.add(draft.choose(beads), inside=cup, count=int(draft.rng.integers(3, 7)))
    draft.say("poured_into", cup, bowl)
    return True


def _pairs(trait: str, relation: str) -> Callable[[GraphDraft], bool]:
    """Return a family that puts a thing into or onto another one made for it."""

    def add(draft: GraphDraft) -> bool:
        catalogue = draft.vocabulary.catalogue
        classes = {"inserted": ("peg", "board"), "hung": ("ring", "stand")}[relation]
        ones, others = ([name for name, kind in catalogue.items() if kind.object_class == group] for group in classes)
        pairs = [(a, b) for a in ones for b in others if not TRAITS[trait](catalogue[a], catalogue[b])]
        if not pairs:
            return False
        one, other = pairs[int(draft.rng.integers(len(pairs)))]
        first, second = draft.add(one), draft.add(other)
        if first and second:
            draft.say(relation, first, second)
        return bool(first and second)

    return add


def _flip(draft: GraphDraft) -> bool:
    """Draft a goal that turns a block upside down."""
    options = draft.vocabulary.meeting("boxlike", "graspable")
    thing = draft.add(draft.choose(options)) if options else ""
    if thing:
        draft.say("inverted", thing)
    return bool(thing)


def _move(draft: GraphDraft) -> bool:
    """Draft a goal that moves a thing to another part of the table."""
    firm = [name for name in draft.vocabulary.items if draft.vocabulary.catalogue[name].tilt_margin > 0.3]
    thing = draft.add(draft.choose(firm))
    if thing:
        draft.say("at", thing, draft.choose(("left", "right", "middle", "front", "back")))
    return bool(thing)


def _hold(draft: GraphDraft) -> bool:
    """Draft a goal that a thing is in the hand at the end."""
    if any(goal.relation == "held" for goal in draft.goals):
        return False
    thing = draft.add(draft.choose(draft.vocabulary.items))
    if thing:
        draft.say("held", thing)
    return bool(thing)


RELATIONS = {
    "pack": ("in",),
    "store": ("in",),
    "operate": ("open", "closed", "turned", "pressed"),
    "arrange": ("beside", "left_of", "right_of", "in_front_of", "behind"),
    "stack": ("on",),
    "pour": ("poured_into",),
    "insert": ("inserted",),
    "hang": ("hung",),
    "flip": ("inverted",),
    "move": ("at",),
    "hold": ("held",),
}
"""Relations of the goals of each family."""
FAMILIES: dict[str, tuple[float, Callable[[GraphDraft], bool]]] = {
    "pack": (4.0, _pack),
    "store": (2.0, _store),
    "operate": (2.0, _operate),
    "arrange": (3.0, _arrange),
    "stack": (3.0, _stack),
    "pour": (1.0, _pour),
    "insert": (1.0, _pairs("peg_for", "inserted")),
    "hang": (1.0, _pairs("ring_for", "hung")),
    "flip": (1.0, _flip),
    "move": (1.5, _move),
    "hold": (0.7, _hold),
}
"""Weight and function of each family, by name."""


def draw_graph(
    vocabulary: Vocabulary,
    *,
    seed: int,
    index: int,
    robot: str,
    scene: str,
    families: Sequence[str] = (),
    weights: DrawingWeights | None = None,
    has_room: Callable[[GoalGraph], bool] = lambda graph: True,
) -> GoalGraph:
    """Draw a goal graph.

    Args:
        vocabulary: Kinds of things.
        seed: Seed of the proposals.
        index: Number of the graph.
        robot: Name of the robot.
        scene: Name of the scene.
        families: Names of the families to draw from; all if empty.
        weights: Weights of kinds, relations and lengths, from measured yields.
        has_room: Function that returns True if the things of a graph fit on the table; additions that do not fit are
        dropped.
    """
    rng, weights = generator(seed, "propose", index, VERSION), weights or DrawingWeights()
    counts = np.array(_COUNTS) * [weights.of_goals(count + 1) for count in range(MOST_GOALS)]
    wanted = 1 + int(rng.choice(MOST_GOALS, p=counts / counts.sum()))
    draft = GraphDraft(vocabulary, rng, wanted, weights)
    names = list(families or FAMILIES)
    shares = np.array([FAMILIES[name][0] * weights.of_relations(RELATIONS[name]) for name in names])
    shares /= shares.sum()
    for _ in range(_TRIES):
        if draft.left <= 0:
            break
        things, goals, add = (
            list(draft.things),
            list(draft.goals),
            FAMILIES[names[int(rng.choice(len(names), p=shares))]][1],
        )
        if not add(draft) or not has_room(GoalGraph(robot, scene, tuple(draft.things), tuple(draft.goals))):
            draft.things, draft.goals = things, goals
    graph = GoalGraph(robot, scene, tuple(draft.things), tuple(draft.goals))
    if rng.random() < _DISTRACTOR and draft.add(draft.choose(vocabulary.items)):
        fuller = GoalGraph(robot, scene, tuple(draft.things), graph.goals)
        return fuller if has_room(fuller) else graph
    return graph


def draw_distinct(
    vocabulary: Vocabulary, count: int, *, seed: int, robot: str = "panda", scene: str = "table"
) -> Iterator[tuple[int, GoalGraph]]:
    """Yield graphs with different canonical forms, with their indices.

    Args:
        vocabulary: Kinds of things.
        count: Number of graphs.
        seed: Seed of the proposals.
        robot: Name of the robot.
        scene: Name of the scene.
    """
    seen: set[str] = set()
    for index in range(100 * count):
        graph = draw_graph(vocabulary, seed=seed, index=index, robot=robot, scene=scene)
        if not graph.goals or graph.canonical() in seen:
            continue
        seen.add(graph.canonical())
        yield index, graph
        if len(seen) == count:
            return
