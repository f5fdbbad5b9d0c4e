"""Assignment of the ledger's faults to injected ones, with the times until they were detected."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from statistics import median
from typing import Any

_EARLY = 0.05
"""Largest difference between two readings of the clock [s]."""


@dataclass(kw_only=True)
class Matched:
    """Injected faults and their rows in the ledger."""

    injected: Counter[str] = field(default_factory=Counter)
    detected: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, list[float]] = field(default_factory=dict)
    """Times from a fault to its row [s], by kind."""
    false_kills: list[dict[str, Any]] = field(default_factory=list)
    """Rows of the ledger without an injected fault."""

    def table(self) -> dict[str, dict[str, Any]]:
        """Return one row of numbers per kind of fault."""
        return {
            kind: {
                "injected": count,
                "detected": self.detected[kind],
                "median_s": round(median(self.seconds[kind]), 4) if self.seconds.get(kind) else None,
                "max_s": round(max(self.seconds[kind]), 4) if self.seconds.get(kind) else None,
            }
            for kind, count in sorted(self.injected.items())
        }


def match(injected: list[dict[str, Any]], told: list[dict[str, Any]], *, names: dict[str, str]) -> Matched:
    """Pair injected faults with rows of the ledger in order of time, starting with faults that must be detected.

    Args:
        injected: Faults with ``kind``, ``idx`` (-1 if unknown) and ``time``; a fault with ``may_miss`` hit a process
            that was about to exit, and only counts if the ledger has it.
        told: Rows of the ledger.
        names: Name of each kind in the ledger.
    """
    result, rest = Matched(), list(told)
    # Faults that may be missed come last; otherwise they could take the only row of a later fault.
    for fault in sorted(injected, key=lambda fault: (bool(fault.get("may_miss")), fault["time"])):
        kind = fault["kind"]
        tell = [row for row in rest if _tells_of(row, fault, names)]
        tell.sort(key=lambda row: (not _by_its_clock(row, fault), row["time"]))
        # A row without an episode may belong to any fault, so it is used only if no row names this episode. A fault
        # with an unknown episode takes the first row: a later row may be the only one for a later fault.
        named = (row for row in tell if row["idx"] == fault["idx"] >= 0)
        found = next(named, tell[0] if tell else None)
        result.injected[kind] += bool(found) or not fault.get("may_miss")
        if found:
            rest.remove(found)
            result.detected[kind] += 1
            result.seconds.setdefault(kind, []).append(max(0.0, found["time"] - fault["time"]))
    result.false_kills = rest
    return result


def _by_its_clock(row: dict[str, Any], fault: dict[str, Any]) -> bool:
    """Return True if a row has the fault's kind of deadline: total time for a livelock, silence for other hangs.

    This distinguishes two writers that hang at the same time, because the ledger names no episode for them.
    """
    return row["kind"] != "hang" or ("in this phase" in row.get("detail", "")) == (fault["kind"] == "livelock")


def _tells_of(row: dict[str, Any], fault: dict[str, Any], names: dict[str, str]) -> bool:
    same = row["idx"] == fault["idx"] or -1 in (row["idx"], fault["idx"])
    return same and row["kind"] == names[fault["kind"]] and row["time"] >= fault["time"] - _EARLY
