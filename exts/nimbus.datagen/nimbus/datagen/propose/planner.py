"""Planner from goals to the steps and success conditions of a task file, based on the facts of skills and conditions.

Each goal is regressed: the planner chooses the skill that achieves it, then the skills that achieve what this skill
needs, and so on. It does not search: it takes the first skill by name whose traits are satisfied.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from nimbus.datagen import registry
from nimbus.datagen.errors import InputError
from nimbus.datagen.propose.catalogue import KindEntry
from nimbus.datagen.propose.goal_graph import BETWEEN, Goal, GoalGraph, Thing
from nimbus.datagen.propose.traits import TRAITS, find_part, movable_part
from nimbus.datagen.tasks.facts import CONTRARY, Fact
from nimbus.datagen.tasks.statements import Skill, Statement

Plain: TypeAlias = Any
"""Step, condition, or list of either, as in a task file."""
MOVES = (*(relation for relation in BETWEEN if relation != "poured_into"), "at")
"""Relations that determine the position of a thing."""
_BESIDE = frozenset({"beside", "left_of", "right_of", "in_front_of", "behind"})
_RANKS = {"turned": 0, "pressed": 0, "open": 0, "inverted": 1, "in": 2, "poured_into": 3, "closed": 4, "held": 9}
_OTHERS, _LAST_BESIDE = 5, 6
_MOST_NESTED = 6
"""Largest depth of nested needs; a deeper chain is a cycle in the declarations of skills."""
_MOST_ARMS = 2
"""Largest number of arms of a robot."""
_ASIDE = frozenset({"open", "closed", "turned", "pressed"})
"""Facts after which the arm moves home if no step follows, because closed fingers do not clear the gripper."""


@dataclass(frozen=True)
class TaskPlan:
    """Steps and success conditions of a task."""

    steps: tuple[Plain, ...]
    success: tuple[Plain, ...]


def start_region(name: str) -> str:
    """Return the name of the region where a thing starts."""
    return f"{name}_start"


def goal_region(name: str) -> str:
    """Return the name of the region where a thing with an ``at`` goal ends."""
    return f"{name}_goal"


def plan_task(graph: GoalGraph, catalogue: Mapping[str, KindEntry], *, arms: int = 1) -> TaskPlan:
    """Plan the steps and success conditions of a graph.

    Args:
        graph: Goal graph, already checked.
        catalogue: Catalogue entries of its kinds.
        arms: Number of arms of the robot.

    Raises:
        InputError: A goal is unreachable, holds from the start, or excludes another goal.
    """
    _check_pairs(graph)
    state = _Planning(graph, catalogue, arms)
    for goal in order_goals(graph):
        state.reach(goal)
    state.finish()
    return TaskPlan(tuple(state.steps), tuple(_conditions(graph, catalogue)))


def unreachable_goals(graph: GoalGraph, catalogue: Mapping[str, KindEntry]) -> list[str]:
    """Return a line for each goal that no skill reaches, whatever the other goals are.

    :func:`plan_task` ends at the first one; a model that corrects its graph needs all of them.
    """
    lines = []
    for goal in graph.goals:
        state = _Planning(graph, catalogue, _MOST_ARMS)
        state.facts.discard((goal.relation, goal.object))  # the fact may no longer hold when this goal is planned
        try:
            state.reach(goal)
        except InputError as error:
            lines.append(str(error.diagnostic))
    return lines


def order_goals(graph: GoalGraph) -> list[Goal]:
    """Sort goals so that each can be reached and then stays satisfied.

    A thing is opened before something is put in, and closed afterwards. Lower things come before upper ones. Pouring
    follows putting in, and relations such as ``beside`` come last.
    """
    left, ordered = list(graph.goals), []
    while left:
        ready = [goal for goal in left if not any(precedes(other, goal) for other in left if other is not goal)]
        ordered.append(min(ready or left, key=lambda goal: (_rank(goal), graph.goals.index(goal))))
        left.remove(ordered[-1])
    return ordered


def _rank(goal: Goal) -> int:
    return _LAST_BESIDE if goal.relation in _BESIDE else _RANKS.get(goal.relation, _OTHERS)


def precedes(one: Goal, other: Goal) -> bool:
    """Return True if one goal must be reached before the other."""
    if other.relation in (*MOVES, "poured_into") and one.object == other.target and one.relation in (*MOVES, "open"):
        return True
    if other.relation == "closed" and one.target == other.object:
        return True
    return one.object == other.object and _rank(one) < _rank(other)


def _check_pairs(graph: GoalGraph) -> None:
    """Refuse pairs of goals that exclude each other."""
    for index, goal in enumerate(graph.goals):
        where = f"goals[{index}]"
        for other in graph.goals[:index]:
            same = goal.object == other.object
            if same and {goal.relation, other.relation} == {"open", "closed"}:
                raise InputError(f"'{goal.object}' cannot be open and closed", where=where, instead="remove one")
            if same and goal.relation in MOVES and other.relation in MOVES:
                what = (
                    f"'{goal.object}' cannot be {other.relation} '{other.target}' and {goal.relation} '{goal.target}'"
                )
                raise InputError(what, where=where, instead="remove one of the goals")
            if goal.relation == other.relation == "held":
                raise InputError(
                    "several objects must be held at the end, but a hand holds only one",
                    where=where,
                    instead="remove one of the goals",
                )
        if goal.relation == "held" and (graph.thing(goal.object).count > 1):
            raise InputError(
                "several objects must be held at the end, but a hand holds only one",
                where=where,
                instead=f"use count 1 for '{goal.object}'",
            )


@dataclass
class _Planning:
    """Steps planned so far, and the facts that hold after them."""

    graph: GoalGraph
    catalogue: Mapping[str, KindEntry]
    arms: int
    steps: list[Plain] = field(default_factory=list)
    facts: set[tuple[str, ...]] = field(default_factory=set)
    held: str = ""
    last: tuple[str, ...] = ()
    """Relations that the last step established."""

    def __post_init__(self) -> None:
        for one in self.graph.things:
            part = movable_part(self._kind(one.name))
            if part is None or one.state == "open":
                self.facts.add(("open", one.name))
            if part is not None and one.state != "open":
                self.facts.add(("closed", one.name))
            if one.inside:
                self.facts.add(("in", one.name, one.inside))

    def reach(self, goal: Goal) -> None:
        """Append the steps that reach a goal."""
        where = f"goals[{self.graph.goals.index(goal)}]"
        target = goal_region(goal.object) if goal.relation == "at" else goal.target
        kind = self._kind(goal.object)
        if goal.relation in ("open", "closed") and movable_part(kind) is None:
            what = f"the kind '{kind.category}' has no part that opens or closes"
            raise InputError(what, where=where, instead="use a kind with a door, a drawer or a lid")
        if (goal.relation, goal.object, *([target] if target else [])) in self.facts:
            what = f"'{goal.object}' is {goal.relation} {goal.target}".rstrip() + " at the start"
            raise InputError(what, where=where, instead="remove the goal, or change the start")
        if self.graph.thing(goal.object).inside and goal.relation in MOVES:
            what = f"'{goal.object}' starts inside another thing, where no hand can take it"
            raise InputError(what, where=where, instead="let it start on the table")
        try:
            self._in_a_loop(goal, target)
        except InputError as error:
            raise InputError(error.what, where=where, instead=error.instead) from None

    def finish(self) -> None:
        """Put down a held object, unless a goal is to hold it, and clear the gripper."""
        if self.held and not any(goal.relation == "held" for goal in self.graph.goals):
            self._release()
        if set(self.last) & _ASIDE:
            self.steps.append("home")

    def _in_a_loop(self, goal: Goal, target: str) -> None:
        """Reach a goal, in a loop if it is for several objects; steps for other objects come before the loop."""
        if self.graph.thing(goal.object).count == 1:
            self._achieve(goal.relation, goal.object, target, {}, depth=0)
            return
        before, self.steps = self.steps, []
        self._achieve(goal.relation, goal.object, target, {}, depth=0)
        each = f"each_{goal.object}"
        inside = [step for step in self.steps if _main(step) == goal.object]
        before += [step for step in self.steps if _main(step) != goal.object]
        self.steps = [*before, {f"for {each} in {goal.object}": [_renamed(step, goal.object, each) for step in inside]}]

    def _achieve(self, relation: str, one: str, target: str, settings: dict[str, str], *, depth: int) -> None:
        """Append the steps that establish one fact."""
        if depth > _MOST_NESTED:
            raise InputError(
                f"the needs of '{relation}' include '{relation}' itself", instead="correct the skills' declarations"
            )
        refused: list[str] = []
        for name, skill, fact in providers(relation):
            binding = dict(zip(fact.args, (one, target), strict=False)) | dict(fact.settings)
            binding |= {key: value for key, value in settings.items() if key in skill.model_fields}
            if why := self._unmet(skill, binding):
                refused.append(why)
                continue
            self._apply(name, skill, binding, relation, depth)
            return
        what = f"'{one}' cannot be {relation} {target}".rstrip() + (
            f": {' and '.join(dict.fromkeys(refused))}" if refused else ": no skill achieves this"
        )
        raise InputError(what, instead="use another kind or another relation")

    def _unmet(self, skill: type[Skill], binding: Mapping[str, str]) -> str:
        for need, args in _bound(skill.facts("needs"), binding):
            if need.relation == "two_arms" and self.arms < 2:
                return "the robot has one arm"
            if need.relation in TRAITS and all(self._is_thing(name) for name in args):
                if why := TRAITS[need.relation](*map(self._kind, args)):
                    return why
        return ""

    def _apply(self, name: str, skill: type[Skill], binding: dict[str, str], relation: str, depth: int) -> None:
        # Needs for a held object come last, because other needs require an empty hand.
        for need, args in sorted(_bound(skill.facts("needs"), binding), key=lambda entry: entry[0].relation == "held"):
            if need.relation in (*TRAITS, "two_arms", "clear") or (need.relation, *args) in self.facts:
                continue
            if need.relation == "empty_hand":
                self._release()
            elif need.relation != "held" or self.held != args[0]:
                other = args[1] if len(args) > 1 else ""
                self._achieve(need.relation, args[0], other, dict(need.settings), depth=depth + 1)
        step = dict(binding)
        main = step.get(skill.main, "")
        if "joint" in skill.model_fields and (part := find_part(self._kind(main), relation)):
            step["joint"] = part
        self.steps.append(_statement(name, skill, step))
        self._update(skill, binding)

    def _update(self, skill: type[Skill], binding: Mapping[str, str]) -> None:
        self.last = ()
        for fact, args in _bound(skill.facts("gives"), binding):
            if any(binding.get(key) != value for key, value in fact.settings):
                continue
            self.last = (*self.last, fact.relation)
            if fact.relation == "empty_hand":
                self.held = ""
            elif fact.relation == "held":
                self.held = args[0]
                self.facts -= {entry for entry in self.facts if entry[0] in MOVES and entry[1] == args[0]}
            else:
                for pair in CONTRARY.items():
                    if fact.relation in pair:
                        self.facts -= {(relation, *args) for relation in pair}
                self.facts.add((fact.relation, *args))

    def _release(self) -> None:
        """Return the held object to its start."""
        if self.held:
            self._achieve("at", self.held, start_region(self.held), {}, depth=0)

    def _is_thing(self, name: str) -> bool:
        return any(one.name == name for one in self.graph.things)

    def _kind(self, name: str) -> KindEntry:
        return self.catalogue[self.graph.thing(name).kind]


def providers(relation: str) -> Iterator[tuple[str, type[Skill], Fact]]:
    """Yield the skills that establish a relation, sorted by name, each with the matching fact."""
    for name in registry.names("skill"):
        skill: type[Skill] = registry.lookup("skill", name)
        for fact in skill.facts("gives"):
            if fact.relation == relation:
                yield name, skill, fact


def _bound(facts: tuple[Fact, ...], binding: Mapping[str, str]) -> Iterator[tuple[Fact, list[str]]]:
    """Yield the facts whose parameters are all bound, each with the values of its parameters."""
    for fact in facts:
        if all(name in binding for name in fact.args):
            yield fact, [binding[name] for name in fact.args]


def _statement(name: str, model: type[Statement], values: Mapping[str, str]) -> Plain:
    """Return a step or a condition, in its short form if it has only the main parameter."""
    plain = {key: {"true": True, "false": False}.get(value, value) for key, value in values.items()}
    if set(plain) == {model.main}:
        return {name: plain[model.main]}
    return {name: plain} if plain else name


def _main(step: Plain) -> str:
    ((name, value),) = step.items()
    return value if isinstance(value, str) else str(value.get(registry.lookup("skill", name).main, ""))


def _renamed(step: Plain, name: str, new: str) -> Plain:
    ((skill, value),) = step.items()
    if isinstance(value, str):
        return {skill: new}
    return {skill: {key: new if entry == name else entry for key, entry in value.items()}}


def _conditions(graph: GoalGraph, catalogue: Mapping[str, KindEntry]) -> Iterator[Plain]:
    """Yield one condition per goal in the graph's order, then the conditions of distractors and of the gripper."""
    for goal in graph.goals:
        yield _condition(graph, goal, catalogue)
    for one in graph.things:
        if one.name not in graph.concerned:
            yield {"not_moved": one.name}
    if not any(goal.relation == "held" for goal in graph.goals):
        yield "gripper_clear"


def _condition(graph: GoalGraph, goal: Goal, catalogue: Mapping[str, KindEntry]) -> Plain:
    one, target = goal.object, goal_region(goal.object) if goal.relation == "at" else goal.target
    if goal.relation == "poured_into":
        one = _contents(graph, goal.object).name
    for name in registry.names("predicate"):
        model = registry.lookup("predicate", name)
        for fact in model.facts("states"):
            if fact.relation == goal.relation:
                values = dict(zip(fact.args, (one, target), strict=False)) | dict(fact.settings)
                if "joint" in model.model_fields:
                    part = find_part(catalogue[graph.thing(goal.object).kind], goal.relation)
                    values |= {"joint": part} if part else {}
                return _statement(name, model, values)
    what = f"no condition checks '{goal.relation}'"
    raise InputError(what, where=f"goals[{graph.goals.index(goal)}]", instead="declare it as `states` of a condition")


def _contents(graph: GoalGraph, name: str) -> Thing:
    """Return the thing that starts inside another thing.

    Raises:
        InputError: Nothing starts inside it.
    """
    found = next((one for one in graph.things if one.inside == name), None)
    if found is None:
        what = f"'{name}' contains nothing that could be poured"
        raise InputError(
            what, where="things", instead=f"add a thing, such as beads, that starts inside it, with 'inside: {name}'"
        )
    return found
