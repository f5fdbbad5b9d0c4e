"""What a user can mend, said in one line: where, what is wrong, what to write instead."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from functools import partial

_LONGEST = 500
"""Letters of a part of a message: what a file holds is quoted, not poured out."""
_FEW, _SHOWN = 24, 5
"""So many known names are listed; of more than that the closest."""


class InputError(Exception):
    """Bad input: the command line prints it as one line and exits with code 2.

    Args:
        what: What is wrong, with the value that was found.
        where: The place: ``file:line:column: field``, a flag, or a path.
        instead: What to write instead.
    """

    exit_code = 2

    def __init__(self, what: str, *, where: str = "", instead: str = "") -> None:
        """Build the one line from its three parts."""
        self.what, self.where, self.instead = _clipped(what), where, _clipped(instead)
        line = f"{where}: {self.what}" if where else self.what
        super().__init__(f"{line}; {self.instead}" if instead else line)

    def __reduce__(self) -> tuple[Callable[[str], InputError], tuple[str]]:
        """Keep the three parts on the way from another process."""
        return partial(type(self), where=self.where, instead=self.instead), (self.what,)


def _clipped(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


class StorageError(InputError):
    """The disk is full or went away: nothing half-written stays, exit code 1."""

    exit_code = 1


def single_line(text: str) -> str:
    """Text on one line, what is not printable written as an escape: messages quote files, terminals obey them."""
    letters = text.replace("\n", " ")
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in letters)


def suggest(name: str, known: Iterable[str]) -> str:
    """Say which known name comes closest, and list the known ones when they are few."""
    names = sorted(known)
    match = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"did you mean '{match[0]}'? " if match else ""
    if len(names) > _FEW:
        closest = difflib.get_close_matches(name, names, n=_SHOWN, cutoff=0.0)
        return f"{hint}known: {', '.join(closest)} and {len(names) - len(closest)} more"
    return f"{hint}known: {', '.join(names) if names else 'none'}"
