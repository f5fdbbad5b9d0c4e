"""Questions for intents: relations, kinds with measured sizes, the request, and the findings of earlier rounds."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from nimbus.datagen.files.codec import to_compact_json
from nimbus.datagen.language_model.records import ModelQuestion
from nimbus.datagen.propose.catalogue import KindEntry
from nimbus.datagen.propose.goal_graph import MOST_GOALS, MOST_THINGS
from nimbus.datagen.propose.intent.form import intent_schema
from nimbus.datagen.propose.traits import TRAITS, lacks_room, largest_base

_SAFE = re.compile(r"[^\w' -]+")
"""Characters removed from a category: names of assets are data, and must not act as instructions to the model."""
_REQUEST = 2000
"""Largest number of characters of a request."""
_FINDINGS = 6
"""Largest number of findings in one question."""
_SYSTEM = f"""You write tasks for a robot arm at a table, for the training of robots.
Fill in the form: things on the table, and goals, which are relations between them that hold at the end. You write no
steps, no code, no positions. One task has 1 to {MOST_GOALS} goals and 1 to {MOST_THINGS} things, at most one of them
furniture with moving parts.

Fields of a thing:
- name: your own word for it, small letters, digits and _ only; goals use it
- kind: one of the list below, exactly as written there
- place: where it starts as the robot sees it; empty for anywhere
- inside: name of the thing in which it starts; empty on the table. What is inside something cannot be taken out
- count: number of equal objects, mostly 1
- state: empty, or upright or lying for loose things, open or closed for what has a door, drawer or lid

Relations (object → target):
- in: object lies in target, which needs room inside. A drawer or lid opens by itself; say closed to have it shut
- on: object stands on target, which needs a flat top. A tower is a chain of on
- beside, left_of, right_of, in_front_of, behind: object stands next to target, as the robot sees it
- poured_into: what started inside object is in target; things inside it are beads
- inserted: a peg in its board; hung: a ring on its stand
- at: object stands in a part of the table; the target is left, right, middle, front or back
- open, closed, turned, pressed, inverted (upside down), held (in the hand at the end): the target is empty
A thing has one place at the end. Things that no goal names stay untouched; add one or two as distractors if you like.

instructions: up to six ways in which a person would ask for exactly these goals, in English, naming every goal and
nothing else. reasoning: two sentences on why the task makes sense. title: a few words."""


def intent_question(
    kinds: Sequence[str],
    catalogue: Mapping[str, KindEntry],
    request: str,
    *,
    robots: Sequence[str],
    scenes: Sequence[str],
    number: int = 0,
    accepted: Sequence[str] = (),
    earlier: Mapping[str, object] | None = None,
    findings: Sequence[str] = (),
) -> ModelQuestion:
    """Build the question of one round.

    Args:
        kinds: Kinds that the model may use.
        catalogue: Catalogue entries of the kinds.
        request: Request of the user, possibly empty.
        robots: Names of the robots that the model may choose.
        scenes: Names of the scenes that the model may choose.
        number: Number of the proposal, so that equal requests give different questions.
        accepted: Titles of existing tasks.
        earlier: Intent of the previous round.
        findings: Findings on the earlier intent.
    """
    lines = [f"- {kind}: {_describe(catalogue[kind])}" for kind in kinds]
    parts = [f"Proposal {number + 1}. Kinds:\n" + "\n".join(lines)]
    wanted = " ".join(request.split())[:_REQUEST]
    parts += [f"The task is to be about this: {wanted}"] if wanted else ["The task may be about anything."]
    if accepted:
        parts += ["There are these tasks already; write a different one: " + "; ".join(accepted)]
    if earlier:
        parts += [f"Your form of the round before:\n{to_compact_json(dict(earlier))[: _REQUEST * 4]}"]
    if findings:
        parts += ["It cannot be used. Correct this:\n" + "\n".join(f"- {found}" for found in findings[:_FINDINGS])]
    schema = intent_schema(kinds, robots=robots, scenes=scenes)
    return ModelQuestion(_SYSTEM, "\n\n".join(parts), schema, "intent")


def _describe(kind: KindEntry) -> str:
    """Describe a kind in a few words: category, size and abilities."""
    size = " x ".join(f"{length * 100:.0f}" for length in kind.size)
    can = [name for name, trait in _ABILITIES.items() if not TRAITS[trait](kind)]
    if not lacks_room(kind):
        can += ["has room inside for " + " x ".join(f"{100 * side:.0f}" for side in largest_base(kind)) + " cm"]
    return ", ".join([_SAFE.sub(" ", kind.category)[:40].strip(), f"{size} cm", *can])


_ABILITIES = {
    "can be picked up": "graspable",
    "opens and closes": "has_handle",
    "can be closed": "has_lid",
    "can be turned": "turnable",
    "has a button": "pressable",
    "can be poured from": "pourable",
    "can be poured into": "receives",
    "can be turned upside down": "boxlike",
}
"""Traits by their description for the model."""
