"""What is wrong with a task, and in which field."""

from __future__ import annotations

from dataclasses import dataclass

from nimbus.datagen.errors import InputError


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Something that keeps the task from running, or may."""

    field: str
    """Where it is: ``objects.items.count``; empty for the whole file."""
    what: str
    instead: str = ""
    line: int = 0
    """In the text, from 1; 0 where that is not known."""

    def __str__(self) -> str:
        place = ": ".join(part for part in (f"line {self.line}" if self.line else "", self.field) if part)
        return ": ".join(part for part in (place, self.what) if part) + (f"; {self.instead}" if self.instead else "")


def problem_of(error: InputError) -> Problem:
    """An error of a task file as a problem at its field."""
    place, _, field = error.where.partition(": ")
    parts = place.rsplit(":", 2)
    line = int(parts[1]) if len(parts) == 3 and parts[1].isdigit() else 0
    return Problem(field=field, what=error.what, instead=error.instead, line=line)
