"""Form of an intent (things, goals and wordings from closed choices), and its conversion to a goal graph."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field, ValidationError

from nimbus.datagen.errors import InputError, suggest
from nimbus.datagen.files.codec import to_json
from nimbus.datagen.files.strict_yaml import StrictModel, dotted
from nimbus.datagen.files.validation_errors import field_errors
from nimbus.datagen.propose.goal_graph import (
    MOST_GOALS,
    MOST_THINGS,
    PLACES,
    RELATIONS,
    STATES,
    Goal,
    GoalGraph,
    Thing,
)
from nimbus.datagen.propose.wording.sentences import LONGEST

_MOST_INSTRUCTIONS = 12
_MOST_TEXT = 8000
"""Largest number of characters of the stored reasoning."""
_TITLE = 80
"""Largest number of characters of a title."""
_WHERE = "intent"

_Name = Annotated[str, Field(max_length=200)]


class IntentThing(StrictModel):
    """Thing in the model's reply."""

    name: _Name
    kind: _Name
    place: _Name
    inside: _Name
    count: int
    state: _Name


class IntentGoal(StrictModel):
    """Goal in the model's reply."""

    relation: _Name
    object: _Name
    target: _Name


class IntentForm(StrictModel):
    """Intent in the model's reply."""

    reasoning: str = Field(max_length=_MOST_TEXT)
    title: str
    robot: _Name
    scene: _Name
    things: tuple[IntentThing, ...]
    goals: tuple[IntentGoal, ...]
    instructions: tuple[str, ...]


@dataclass(frozen=True)
class Intent:
    """Checked intent; the claims of its instructions are not checked yet."""

    title: str
    graph: GoalGraph
    instructions: tuple[str, ...]


def intent_schema(kinds: Collection[str], *, robots: Sequence[str], scenes: Sequence[str]) -> dict[str, Any]:
    """Return the JSON Schema of an intent, in the subset of strict servers: required fields and closed choices."""
    text = {"type": "string"}
    thing = {
        "name": text,
        "kind": _choice(kinds),
        "place": _choice(PLACES),
        "inside": text,
        "count": {"type": "integer"},
        "state": _choice(STATES),
    }
    goal = {"relation": _choice(RELATIONS), "object": text, "target": text}
    return _object(
        {
            "reasoning": text,
            "title": text,
            "robot": _choice(robots),
            "scene": _choice(scenes),
            "things": {"type": "array", "items": _object(thing)},
            "goals": {"type": "array", "items": _object(goal)},
            "instructions": {"type": "array", "items": text},
        }
    )


def _choice(values: Collection[str]) -> dict[str, Any]:
    return {"type": "string", "enum": list(values)}


def _object(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": dict(fields), "required": list(fields), "additionalProperties": False}


def read_intent(
    value: Mapping[str, Any],
    kinds: Collection[str],
    offered: Collection[str] = (),
    *,
    robots: Sequence[str],
    scenes: Sequence[str],
) -> Intent:
    """Check the reply of a model, whatever the server has checked, and convert it to a graph.

    Args:
        value: JSON values of the reply, which are not trusted.
        kinds: Names of all known kinds.
        offered: Names of the kinds in the question, from which an unknown one is to be replaced; all if empty.
        robots: Names of allowed robots.
        scenes: Names of allowed scenes.

    Raises:
        InputError: The reply has a mistake; the first one is reported.
    """
    for field, most in (("things", MOST_THINGS), ("goals", MOST_GOALS), ("instructions", _MOST_INSTRUCTIONS)):
        # The number of entries is checked first, so that a reply with a million of them costs nothing.
        if isinstance(entries := value.get(field), list) and len(entries) > most:
            raise InputError(f"has {len(entries)} {field}", where=_WHERE, instead=f"give at most {most}")
    try:
        form = IntentForm.model_validate_json(to_json(value))
    except ValidationError as error:
        first = field_errors(error, IntentForm, dict(value))[0]
        where = ": ".join(filter(None, (_WHERE, dotted(first.keys))))
        raise InputError(first.what, where=where, instead=first.instead) from None
    for field, chosen, known in (("robot", form.robot, robots), ("scene", form.scene, scenes)):
        if chosen not in known:
            what = f"unknown {field} '{chosen[:60]}'"
            raise InputError(what, where=f"{_WHERE}: {field}", instead=suggest(chosen[:60], known))
    for index, thing in enumerate(form.things):
        if thing.kind not in kinds:
            where = f"{_WHERE}: things[{index}].kind"
            instead = suggest(thing.kind[:60], offered or kinds)
            raise InputError(f"unknown kind '{thing.kind[:60]}'", where=where, instead=instead)
    things = tuple(Thing(**thing.model_dump()) for thing in form.things)
    goals = tuple(Goal(**goal.model_dump()) for goal in form.goals)
    graph = GoalGraph(form.robot, form.scene, things, goals)
    graph.check(where=_WHERE)
    said = (" ".join(text.split()) for text in form.instructions)
    instructions = tuple(text for text in said if text.isprintable() and 0 < len(text) <= LONGEST)
    title = "".join(letter if letter.isprintable() else " " for letter in form.title)
    return Intent(" ".join(title.split())[:_TITLE], graph, instructions)
