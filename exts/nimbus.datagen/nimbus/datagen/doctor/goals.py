"""Check that the steps can lead to the success conditions, as far as the task file shows."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import combinations, product
from typing import TYPE_CHECKING

from nimbus.datagen.doctor.case import make_finding
from nimbus.datagen.errors import Diagnostic
from nimbus.datagen.execute.planner import begin_attempt
from nimbus.datagen.random_streams import generator
from nimbus.datagen.tasks.checks.references import points_of, references_of
from nimbus.datagen.tasks.facts import BELOW, CONTRARY, Fact
from nimbus.datagen.tasks.references import names_in, parse_reference
from nimbus.datagen.tasks.statements import Skill, each
from nimbus.datagen.tasks.steps import Composite, Step, walk

if TYPE_CHECKING:
    from nimbus.datagen.doctor.case import Case

Place = tuple[str, tuple[Composite, ...]]
"""A reference, and the loops around it."""
_KEPT = frozenset({"at_rest", "fixtures_unmoved", "gripper_clear", "not_moved", "nothing_on_floor", "upright"})
"""Conditions that require no change. The goal of a task with only these is a motion, such as shaking a can."""
_LAYOUTS = 4
"""Number of drawn layouts; a condition that holds at the start of all of them is assumed to hold in every layout."""


def check_goals(case: Case) -> Iterator[Diagnostic]:
    """Find conditions on objects that no step touches, contradictory conditions, and conditions that steps prevent."""
    plain = [(step, loops) for step, loops in walk(case.task.success) if _stands_alone(case, step)]
    yield from _untouched(case, plain)
    yield from _exclusive(case, plain)
    yield from _beside_and_on(case, plain)
    yield from _still_holding(case, plain)
    yield from _elsewhere(case, plain)


def _stands_alone(case: Case, step: Step) -> bool:
    """Return True for a condition outside ``any:``, ``all:`` and ``not:``; the task succeeds only if it holds."""
    words = {str(key) for key in step.keys}
    return not words & {"any", "not", "all"}


def _untouched(case: Case, conditions: list) -> Iterator[Diagnostic]:
    touched = {group for step, loops in walk(case.task.steps) for group in _groups(case, step, loops)}
    # A step that touches a container also touches the objects that start inside it.
    touched |= {name for name, group in case.task.objects.items() if group.region in touched}
    for step, loops in conditions:
        fact = _changed(step)
        if fact is None:
            continue
        mine = set(case.groups(step.target, loops)) if step.target else _groups(case, step, loops)
        for group in sorted(mine - touched):
            other = getattr(step.statement, fact.other) if fact.other else ""
            if isinstance(other, str) and other and case.task.objects[group].region in case.groups(other, loops):
                continue  # it starts inside
            field = (*step.keys, type(step.statement).main) if type(step.statement).main else step.keys
            what = f"no step touches '{group}', so '{step.name}' cannot become true"
            one = group if case.task.objects[group].count == (1, 1) else f"{group}[0]"
            instead = f"add a step for '{group}', such as pick: {one}, or leave the condition out"
            yield make_finding("goals", case.task, field, what, instead=instead, certain=step.name != "on")


def _changed(step: Step) -> Fact | None:
    """Return the fact that a condition states; None if it may hold at the start without any step."""
    facts = [fact for fact in step.statement.facts("states") if not fact.settings]
    return next((fact for fact in facts if fact.relation not in CONTRARY.values()), None)


def _groups(case: Case, step: Step, loops: tuple[Composite, ...]) -> set[str]:
    named = {name: name for name in case.task.objects} | {loop.variable: loop.group for loop in loops}
    names = {name for _, _, expression in references_of(case.task, step) for name in names_in(expression)}
    names |= {name for _, point in points_of(step) for name in names_in(point.thing)}
    return {named[name] for name in names if name in named}


def _exclusive(case: Case, conditions: list) -> Iterator[Diagnostic]:
    for (one, _), (other, _) in combinations(conditions, 2):
        names = {one.name, other.name}
        stated = [{fact.relation: fact.args for fact in step.statement.facts("states")} for step in (one, other)]
        for relation, contrary in CONTRARY.items():
            pair = next(((a, b) for a, b in (stated, stated[::-1]) if relation in a and contrary in b), None)
            if pair and (not pair[1][contrary] or one.target == other.target):
                what = f"'{one.name}' and '{other.name}' exclude each other"
                yield make_finding("goals", case.task, other.keys, what, instead="leave one of them out", certain=True)
        if names == {"inside"} and one.target == other.target:
            first, second = (getattr(step.statement, "container", "") for step in (one, other))
            fixtures = case.assets.stage.fixtures
            if first != second and first in fixtures and second in fixtures:
                what = f"'{one.target}' cannot be in '{first}' and in '{second}'"
                keys = (*other.keys, "container")
                yield make_finding("goals", case.task, keys, what, instead=f"write {first}", certain=True)


def _beside_and_on(case: Case, conditions: list) -> Iterator[Diagnostic]:
    """Find pairs of things that must be beside each other, and also in or on each other."""
    beside = [entry for entry in conditions if entry[0].name == "beside"]
    lying = [(step, loops, fact) for step, loops in conditions if (fact := _changed(step)) and fact.relation in BELOW]
    for (one, loops), (other, others, fact) in product(beside, lying):
        pair = ((one.statement.object, loops), (one.statement.of, loops))
        below = getattr(other.statement, fact.other)
        for text in each(other.statement.object):
            if _is_pair(case, pair, ((text, others), (below, others))):
                what = f"'beside' and '{other.name}' exclude each other: a thing beside another does not rest on it"
                certain = other.name == "on"
                yield make_finding(
                    "goals", case.task, other.keys, what, instead="leave one of them out", certain=certain
                )
                break


def _is_pair(case: Case, one: tuple[Place, Place], other: tuple[Place, Place]) -> bool:
    """Return True if two conditions relate the same two things, in either order."""
    ways = (one, one[::-1])
    return any(_leads_to(case, other[0], first) and _leads_to(case, other[1], second) for first, second in ways)


def _leads_to(case: Case, many: Place, one: Place) -> bool:
    """Return True if a reference certainly includes the targets of another one."""
    (text, loops), (other, others) = many, one
    if text in case.task.objects and case.groups(*one) == (text,):
        return True  # a group includes each of its members
    return text == other and _variables(text, loops) == _variables(other, others)


def _variables(text: str, loops: tuple[Composite, ...]) -> dict[str, str]:
    """Return the loop variables in a reference, with the groups that they range over."""
    names = names_in(parse_reference(text))
    return {loop.variable: loop.group for loop in loops if loop.variable in names}


def _still_holding(case: Case, conditions: list) -> Iterator[Diagnostic]:
    """Find a condition ``gripper_clear`` that fails because the steps take an object and never put it down."""
    clear = next((step for step, _ in conditions if step.name == "gripper_clear"), None)
    skills = [step.statement for step, _ in walk(case.task.steps) if isinstance(step.statement, Skill)]
    if clear is None or any(skill.hand in ("puts", "") for skill in skills):
        return
    if any(skill.hand == "takes" for skill in skills):
        what = "the steps take something into the gripper and never put it down"
        instead = "add a step such as place: {object: …, into: …}, or leave the condition out"
        yield make_finding("goals", case.task, clear.keys, what, instead=instead, certain=True)


def _elsewhere(case: Case, conditions: list) -> Iterator[Diagnostic]:
    """Find an object that must end in one fixture but is only put into others."""
    puts: dict[str, set[str]] = {}
    free: set[str] = set()
    for step, loops in walk(case.task.steps):
        skill = step.statement
        if not isinstance(skill, Skill) or skill.hand == "keeps":
            continue
        into = getattr(skill, "into", None)
        for group in _groups(case, step, loops):
            names = set(case.fixtures(into, loops)) if isinstance(into, str) and skill.hand == "puts" else set()
            puts.setdefault(group, set()).update(names)
            if skill.hand != "takes" and not names:
                free.add(group)  # the place of the object is unknown
    for step, loops in conditions:
        container = getattr(step.statement, "container", None)
        if step.name != "inside" or not isinstance(container, str):
            continue
        wanted = set(case.fixtures(container, loops))
        for group in case.groups(step.target, loops):
            if wanted and puts.get(group) and group not in free and not wanted & puts[group]:
                what = f"the steps put '{group}' into {', '.join(sorted(puts[group]))}, never into '{container}'"
                instead = f"write container: {sorted(puts[group])[0]}"
                yield make_finding("goals", case.task, (*step.keys, "container"), what, instead=instead, certain=True)


def check_trivial_success(case: Case) -> Iterator[Diagnostic]:
    """Find conditions that hold in the drawn layouts as soon as everything has come to rest."""
    if {step.name for step, _ in walk(case.task.success)} <= _KEPT:
        return
    for index, layout in enumerate(case.layouts[:_LAYOUTS]):
        streams = partial(generator, case.seed, index, "attempt", 0)
        doing = begin_attempt(case.task, case.simulation, layout, streams=streams, planner="ompl")
        if doing.failure(case.task.success, doing.scope) is not None:
            return
    what = "the condition is true before the robot moves"
    instead = "start the objects away from their goals, or write a condition that the steps make true"
    yield make_finding("already", case.task, ("success",), what, instead=instead)
