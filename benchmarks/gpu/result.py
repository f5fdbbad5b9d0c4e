"""Results of the suite's parts: passed, failed or skipped, with rows of figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

Row: TypeAlias = dict[str, str | int | float]
"""Figures by column name."""


class State(StrEnum):
    """State of a part when it has ended."""

    PASSED = "passed"
    FAILED = "FAILED"
    SKIPPED = "SKIPPED"


class MissingError(Exception):
    """Raised if something that a part needs is missing on this machine; the message is the reason."""


@dataclass(frozen=True, kw_only=True)
class PartResult:
    """Outcome of one part of the suite."""

    rows: tuple[Row, ...] = ()
    problems: tuple[str, ...] = ()
    """One line for each check that failed."""
    skipped: str = ""
    """Reason why the part, or the rest of it, was left out."""
    seconds: float = 0.0
    """Wall time [s]."""

    @property
    def state(self) -> State:
        """State: failed if a check failed, skipped if nothing was measured."""
        if self.problems:
            return State.FAILED
        return State.SKIPPED if self.skipped and not self.rows else State.PASSED


def format_table(rows: Sequence[Row]) -> str:
    """Return rows as aligned text, with a column for each name; empty without rows."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    if not names:
        return ""
    cells = [names, *([_text(row.get(name, "")) for name in names] for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(names))]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in cells)


def _text(value: str | int | float) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
