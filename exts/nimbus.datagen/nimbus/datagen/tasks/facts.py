"""Facts: relations between parameters that a skill needs or gives, or that a condition states.

``in(object, into)`` relates the values of the parameters ``object`` and ``into``; ``beside(object, beside, side=left)``
applies only if ``side`` is ``left``. A relation with one argument is a state of a thing; ``empty_hand`` is a state of
the robot.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache

CONTRARY = {"open": "closed", "held": "empty_hand", "moved": "untouched"}
"""Relations that exclude each other; the second one usually holds at the start of a task."""
BELOW = frozenset({"in", "on"})
"""Relations of a thing to its container or support."""
_FORM = re.compile(r"(?P<relation>[a-z_]+)(\((?P<inside>[^()]*)\))?")


@dataclass(frozen=True)
class Fact:
    """One relation over names of parameters."""

    relation: str
    args: tuple[str, ...] = ()
    """Parameters that are related."""
    settings: tuple[tuple[str, str], ...] = ()
    """Values that other parameters must have, as written in a task file."""

    @property
    def other(self) -> str:
        """Second argument; empty where there is none."""
        return self.args[1] if len(self.args) > 1 else ""


@cache
def parse_fact(text: str) -> Fact:
    """Parse a fact.

    Raises:
        ValueError: The text is not a fact; the message contains it.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise ValueError(f"'{text}' is not a fact; write relation(parameter, parameter, setting=value)")
    parts = [part.strip() for part in (match["inside"] or "").split(",") if part.strip()]
    pairs = [part.partition("=") for part in parts if "=" in part]
    settings = tuple((name.strip(), value.strip()) for name, _, value in pairs)
    return Fact(match["relation"], tuple(part for part in parts if "=" not in part), settings)


def parse_facts(texts: Collection[str], fields: Collection[str], *, where: str) -> tuple[Fact, ...]:
    """Parse the facts that a class declares.

    Args:
        texts: The declarations.
        fields: Parameters of the class.
        where: Class and attribute, for the error.

    Raises:
        TypeError: The value is not a tuple of facts, or names a parameter that does not exist.
    """
    if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
        raise TypeError(f"{where} is {texts!r}; write a tuple of facts, such as ('empty_hand',)")
    try:
        facts = tuple(map(parse_fact, texts))
    except ValueError as error:
        raise TypeError(f"{where}: {error}") from None
    for fact in facts:
        for name in fact.args:
            if name not in fields:
                raise TypeError(f"{where}: '{name}' is not one of its parameters")
    return facts
