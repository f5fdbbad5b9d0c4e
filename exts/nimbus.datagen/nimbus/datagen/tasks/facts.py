"""Facts: relations that a skill needs and gives, and that a condition states, over its own parameters.

``in(object, into)`` is about what the parameters ``object`` and ``into`` name; ``beside(object, beside, side=left)``
holds where ``side`` is ``left``. A relation of one argument is a state of a thing, ``empty_hand`` one of the robot.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache

CONTRARY = {"open": "closed", "held": "empty_hand", "moved": "untouched"}
"""Relations that exclude each other; the second one holds by itself at the start of most tasks."""
BELOW = frozenset({"in", "on"})
"""Relations of a thing to what it lies in or on."""
_FORM = re.compile(r"(?P<relation>[a-z_]+)(\((?P<inside>[^()]*)\))?")


@dataclass(frozen=True)
class Fact:
    """One relation, over names of parameters."""

    relation: str
    args: tuple[str, ...] = ()
    """Parameters that name what it is about."""
    settings: tuple[tuple[str, str], ...] = ()
    """Values, as a task file has them, that parameters must have."""

    @property
    def other(self) -> str:
        """The second argument; empty where there is none."""
        return self.args[1] if len(self.args) > 1 else ""


@cache
def parse_fact(text: str) -> Fact:
    """Read a fact.

    Raises:
        ValueError: It is none; the message holds the text.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise ValueError(f"'{text}' is no fact; write relation(parameter, parameter, setting=value)")
    parts = [part.strip() for part in (match["inside"] or "").split(",") if part.strip()]
    pairs = [part.partition("=") for part in parts if "=" in part]
    settings = tuple((name.strip(), value.strip()) for name, _, value in pairs)
    return Fact(match["relation"], tuple(part for part in parts if "=" not in part), settings)


def parse_facts(texts: Collection[str], fields: Collection[str], *, where: str) -> tuple[Fact, ...]:
    """Read the facts that a class declares.

    Args:
        texts: The declarations.
        fields: Parameters of the class.
        where: Class and attribute, for the error.

    Raises:
        TypeError: They are no tuple of facts, or name a parameter that does not exist.
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
                raise TypeError(f"{where}: '{name}' is none of its parameters")
    return facts
