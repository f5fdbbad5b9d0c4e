"""Errors for users and findings of checks, each with location, message and fix."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

BUG = 70
"""Exit code for a bug of Nimbus (``EX_SOFTWARE``); the traceback is shown."""
_LONGEST = 500
"""Longest part of a message [characters]; a message may quote a file."""
_FEW, _SHOWN = 24, 5
"""Largest number of known names that are all listed, and number of the closest names listed when there are more."""


_LOCATION = re.compile(r"^.*?:(?P<line>\d+):\d+(?:: (?P<field>.*))?$")
"""Pattern of a location in a file: ``file:line:column: field``."""


class Severity(StrEnum):
    """Severity of a diagnostic."""

    FAIL = "fail"
    """No episode can succeed, training fails, or a reader fails."""
    WARN = "warn"
    """Some episodes fail, or the data are less useful."""


@dataclass(frozen=True, kw_only=True)
class Diagnostic:
    """Problem reported by an error, the doctor, a quality check or the task editor."""

    where: str = ""
    """Location: ``file:line:column: field``, an episode, a flag, or a path."""
    what: str
    """Message, including the value that was found."""
    instead: str = ""
    """Fix."""
    check: str = ""
    """Name of the check that found the problem; empty for errors."""
    severity: Severity = Severity.FAIL

    @property
    def is_certain(self) -> bool:
        """True for a failure, false for a warning."""
        return self.severity is Severity.FAIL

    @property
    def line(self) -> int:
        """Line in the file, from 1; 0 for a location outside a file."""
        match = _LOCATION.match(self.where)
        return int(match["line"]) if match else 0

    @property
    def field(self) -> str:
        """Field of the file, such as ``objects.items.kinds``; empty if the diagnostic concerns the whole file."""
        match = _LOCATION.match(self.where)
        return (match["field"] or "") if match else ""

    @property
    def in_file(self) -> str:
        """One line without the name of the file, for display beside the file."""
        parts = (f"line {self.line}" if self.line else "", self.field, self.what)
        return ": ".join(filter(None, parts)) + (f"; {self.instead}" if self.instead else "")

    def __str__(self) -> str:
        line = f"{self.where}: {self.what}" if self.where else self.what
        return f"{line}; {self.instead}" if self.instead else line


class InputError(Exception):
    """Raised for invalid input. The command line prints it as one line, and exits with code 2.

    Args:
        what: Problem, including the invalid value.
        where: Location: ``file:line:column: field``, a flag, or a path.
        instead: Fix.
    """

    exit_code = 2

    def __init__(self, what: str, *, where: str = "", instead: str = "") -> None:
        """Build the line from its three parts."""
        # The parts may quote files, names and libraries, and some callers print them directly.
        where, what, instead = visible(where), visible(_clipped(what)), visible(_clipped(instead))
        self.diagnostic = Diagnostic(where=where, what=what, instead=instead)
        super().__init__(str(self.diagnostic))

    @classmethod
    def from_diagnostic(cls, diagnostic: Diagnostic) -> InputError:
        """Build an error with the message, location and fix of a diagnostic."""
        return cls(diagnostic.what, where=diagnostic.where, instead=diagnostic.instead)

    @property
    def what(self) -> str:
        """Message, including the value that was found."""
        return self.diagnostic.what

    @property
    def where(self) -> str:
        """Location of the problem."""
        return self.diagnostic.where

    @property
    def instead(self) -> str:
        """Fix of the problem."""
        return self.diagnostic.instead

    def __reduce__(self) -> tuple[Callable[[str], InputError], tuple[str]]:
        """Pickle the three parts, because ``Exception`` would only pickle the joined line."""
        return partial(type(self), where=self.where, instead=self.instead), (self.what,)


def _clipped(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


class StorageError(InputError):
    """Raised if the disk is full or disappeared. No partial file remains, and the exit code is 1."""

    exit_code = 1


class StoreAwayError(StorageError):
    """Raised when a store does not answer, or answers unexpectedly; a repeated call may succeed."""


def single_line(text: str) -> str:
    """Return text as one line with unprintable characters escaped, because terminals would interpret them."""
    return visible(text.replace("\n", " ").replace("\t", "\\t"))


def visible(text: str) -> str:
    """Escape unprintable characters except line ends and tabs, because a terminal would interpret them."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() or letter in "\n\t" else ascii(letter)[1:-1] for letter in text)


def quote_words(*words: object) -> str:
    """Return the words of a command that a message suggests, quoted for a shell: names and paths may be of others."""
    return shlex.join(map(str, words))


def suggest(name: str, known: Iterable[str]) -> str:
    """Suggest the closest known name, and list all known names if they are few."""
    names = sorted(known)
    match = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"did you mean '{match[0]}'? " if match else ""
    if len(names) > _FEW:
        closest = difflib.get_close_matches(name, names, n=_SHOWN, cutoff=0.0)
        return f"{hint}known: {', '.join(closest)} and {len(names) - len(closest)} more"
    return f"{hint}known: {', '.join(names) if names else 'none'}"
