"""Wordings with fields in braces, as in ``Sort {items}`` of a task file."""

from __future__ import annotations

from dataclasses import dataclass
from string import Formatter


@dataclass(frozen=True)
class WordingField:
    """A pair of braces in a wording."""

    name: str
    text: str
    """As it was written, braces included."""

    @property
    def is_plain(self) -> bool:
        """Whether it is a name alone: widths and conversions are for numbers, not for sentences."""
        return self.text == f"{{{self.name}}}"


def wording_fields(wording: str) -> list[WordingField]:
    """What stands in braces.

    Raises:
        ValueError: A brace has no partner.
    """
    found = []
    for _, name, form, conversion in Formatter().parse(wording):
        if name is not None:
            more = (f"!{conversion}" if conversion else "") + (f":{form}" if form else "")
            found.append(WordingField(name, f"{{{name}{more}}}"))
    return found
