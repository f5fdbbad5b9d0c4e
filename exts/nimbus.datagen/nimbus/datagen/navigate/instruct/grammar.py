"""Grammar of instructions, which generates sentences from claims, and parses them back to the same claims."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from nimbus.datagen.navigate.instruct.claims import Claim, article

_TURNS = ("turn {side}", "take a turn to the {side}", "make a turn to the {side}")
_AROUND = ("turn around", "turn all the way around")
_ENTRIES = ("go into the {noun}", "walk into the {noun}", "enter the {noun}", "continue into the {noun}")
_PASSES = ("walk past {noun} on your {side}", "pass {noun} on your {side}", "go past {noun} on your {side}")
_STOPS = ("stop in front of {noun}", "stop at {noun}", "wait by {noun}")
_JOINTS = (". ", ", then ", " and ")
"""Connections between two steps; a period ends the sentence."""
_THING = r"(?P<article>the|an?) (?P<noun>[a-z' -]+?)"
_READERS = (
    ("turn", re.compile(r"(?:turn|take a turn to the|make a turn to the) (?P<side>left|right)")),
    ("around", re.compile(r"turn (?:all the way )?around")),
    ("enter", re.compile(r"(?:go into|walk into|enter|continue into) the (?P<noun>[a-z' -]+?)")),
    ("pass", re.compile(rf"(?:walk past|pass|go past) {_THING} on your (?P<side>left|right)")),
    ("stop", re.compile(rf"(?:stop in front of|stop at|wait by) {_THING}")),
)
_BETWEEN = re.compile(r"\. |, then | and |\.$")
MOST_WORDS = 60
"""Largest number of words in an instruction."""


def clause(claim: Claim, rng: np.random.Generator) -> str:
    """Draw the wording of one claim, without capital letter and period."""
    patterns = {"turn": _AROUND if claim.side == "around" else _TURNS, "enter": _ENTRIES, "pass": _PASSES}
    choices = patterns.get(claim.kind, _STOPS)
    noun = claim.noun if claim.kind == "enter" else f"{article(claim.noun, claim.is_unique)} {claim.noun}"
    return choices[int(rng.integers(len(choices)))].format(side=claim.side, noun=noun)


def write_text(claims: Sequence[Claim], rng: np.random.Generator) -> tuple[str, tuple[str, ...]]:
    """Draw the wording of claims; return the whole text, and the wording of each claim.

    Raises:
        ValueError: The text cannot be parsed back to the claims; some names in third-party scenes cause this.
    """
    clauses = [clause(claim, rng) for claim in claims]
    text, in_sentence = "", 0
    for number, words in enumerate(clauses):
        if number:
            before = claims[number - 1]
            weights = (0.5, 0.3, 0.2) if before.kind == "turn" else (0.7, 0.3, 0.0)
            joint = _JOINTS[int(rng.choice(3, p=weights))] if in_sentence < 3 else _JOINTS[0]
            in_sentence = 0 if joint == _JOINTS[0] else in_sentence + 1
            text += joint
        text += words if text and not text.endswith(". ") else words[:1].upper() + words[1:]
    text += "." if text else ""
    if read_claims(text) != tuple(claims):
        raise ValueError(f"the instruction cannot be parsed back to its claims: {text}")
    return text, tuple(clauses)


def read_claims(text: str) -> tuple[Claim, ...]:
    """Parse the claims of a text of this grammar.

    Raises:
        ValueError: A part is not a clause of the grammar.
    """
    if not text:
        return ()
    if not text.endswith("."):
        raise ValueError("the text does not end with a period")
    return tuple(_read_clause(words) for words in _BETWEEN.split(text)[:-1])


def _read_clause(words: str) -> Claim:
    plain = words[:1].lower() + words[1:]
    for kind, reader in _READERS:
        if match := reader.fullmatch(plain):
            found = match.groupdict()
            if kind == "around":
                return Claim(kind="turn", side="around")
            if kind == "turn":
                return Claim(kind="turn", side="left" if found["side"] == "left" else "right")
            if kind == "enter":
                return Claim(kind="enter", noun=found["noun"])
            unique = found["article"] == "the"
            if kind == "stop":
                return Claim(kind="stop", noun=found["noun"], is_unique=unique)
            side = "left" if found["side"] == "left" else "right"
            return Claim(kind="pass", side=side, noun=found["noun"], is_unique=unique)
    raise ValueError(f"'{words}' is not a step of an instruction")


def count_words(text: str) -> int:
    """Count the words of a text."""
    return len(text.split())
