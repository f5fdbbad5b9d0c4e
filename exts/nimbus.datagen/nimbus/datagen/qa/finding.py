"""What a check finds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How bad it is."""

    FAIL = "fail"
    """Training on it goes wrong, or a reader fails."""
    WARN = "warn"
    """Worth a look."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One fault in one place."""

    check: str
    """Name of the check."""
    level: Level
    where: str
    """Episode, file or feature."""
    what: str


class Unreadable(Exception):
    """A file of the dataset that is missing or damaged, or lacks something."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__(f"{where}: {what}")
        self.where, self.what = where, what.split("\n")[0]


def fail(check: str, where: str, what: str) -> Finding:
    """A finding that fails the dataset."""
    return Finding(check=check, level=Level.FAIL, where=where, what=what)


def warn(check: str, where: str, what: str) -> Finding:
    """A finding worth a look."""
    return Finding(check=check, level=Level.WARN, where=where, what=what)
