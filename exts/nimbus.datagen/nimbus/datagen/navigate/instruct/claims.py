"""Claims of an instruction, one per step."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.codec import from_plain

ClaimKind = Literal["turn", "enter", "pass", "stop"]
"""``turn`` to a side, ``enter`` a room, ``pass`` an object on a side, ``stop`` at an object."""
Side = Literal["", "left", "right", "around"]
SIDES: tuple[Side, ...] = ("left", "right", "around")
_NOUNS = {
    "childs_room": "child's room",
    "counter_base": "counter",
    "desk_base": "desk",
    "island_base": "kitchen island",
    "packing_base": "packing table",
    "workshop_base": "work table",
    "sink_unit": "sink",
    "tall_unit": "tall cupboard",
    "drawer_unit": "chest of drawers",
    "bin_wall": "wall of bins",
    "gondola": "shelf rack",
}
"""English names of classes and kinds of rooms whose identifiers are not plain English."""
_NAME = re.compile(r"[a-z][a-z' -]{0,38}[a-z]")


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One claim of an instruction."""

    kind: ClaimKind
    side: Side = ""
    """Side of a turn or of a passed object; empty for other claims."""
    noun: str = ""
    """Name of the room or object, such as ``dining table``; empty for a turn."""
    is_unique: bool = True
    """True if no other object of the class is in view; the article is then "the" instead of "a"."""


@dataclass(frozen=True, kw_only=True)
class InstructionStep:
    """Claim with its wording and the rows of the episode in which it holds."""

    claim: Claim
    start: int
    """First row."""
    stop: int
    """Row after the last one."""
    text: str = ""
    """Wording; empty until it is drawn."""


@dataclass(frozen=True, kw_only=True)
class StoredInstruction:
    """Steps of an instruction as stored in the layout of an episode."""

    source: str
    """``template`` for the grammar, or the name of a language model."""
    steps: tuple[InstructionStep, ...]

    def to_plain(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {"source": self.source, "steps": [asdict(step) for step in self.steps]}

    @classmethod
    def from_drawn(cls, drawn: Mapping[str, Any], *, where: str) -> StoredInstruction | None:
        """Read the instruction of a stored layout; return None if it has none.

        Args:
            drawn: Drawn values of the layout's visual part.
            where: Location for errors.

        Raises:
            InputError: The steps are damaged.
        """
        if "instruction" not in drawn:
            return None
        try:
            return from_plain(cls, drawn["instruction"])
        except ValueError as error:
            what = f"the steps of its instruction are damaged: {error}".splitlines()[0]
            raise InputError(what, where=where, instead="run 'nimbus verify' for details") from None


def noun_of(object_class: str) -> str:
    """Return the English noun for a class or kind of room; empty if its name does not fit into a sentence."""
    name = _NOUNS.get(object_class, object_class.replace("_", " ").strip().lower())
    return name if _NAME.fullmatch(name) and not set(name.split()) & {*SIDES, "and", "then", "on", "your"} else ""


def room_noun(name: str) -> str:
    """Return the English noun for a room, given its name, such as ``dining_room_0``."""
    return noun_of(re.sub(r"_\d+$", "", name))


def article(noun: str, is_unique: bool) -> str:
    """Return the article for a noun: "the" if it is unique, otherwise "a" or "an"."""
    if is_unique:
        return "the"
    return "an" if noun[:1] in "aeiou" else "a"
