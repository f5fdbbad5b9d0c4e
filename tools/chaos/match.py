"""Assignment of the ledger's faults to injected ones, with the times until they were noticed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from statistics import median
from typing import Any

_EARLY = 0.05
"""[s] by which two readings of the clock may differ."""


@dataclass(kw_only=True)
class Matched:
    """Injected faults beside those that were told of."""

    injected: Counter[str] = field(default_factory=Counter)
    detected: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, list[float]] = field(default_factory=dict)
    """[s] from the fault to its row, by kind."""
    false_kills: list[dict[str, Any]] = field(default_factory=list)
    """Rows that tell of no injected fault."""

    def table(self) -> dict[str, dict[str, Any]]:
        """A row a kind."""
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
    """Pair faults in order of time, those that must be noticed first.

    Args:
        injected: With ``kind``, ``idx`` (-1 when it is not known) and ``time``; one with ``may_miss`` hit a process
            that was about to leave, and counts only when it was told of.
        told: Rows of the ledger.
        names: What the ledger calls each kind.
    """
    result, rest = Matched(), list(told)
    # One that may have been missed comes last, or it would take the only row of a later one.
    for fault in sorted(injected, key=lambda fault: (bool(fault.get("may_miss")), fault["time"])):
        kind = fault["kind"]
        tell = [row for row in rest if _tells_of(row, fault, names)]
        tell.sort(key=lambda row: (not _by_its_clock(row, fault), row["time"]))
        # A row without an episode may tell of any: only where no row names this one. Of whom it is not known which
        # episode it hit, the first row tells, whatever it names: a later one may be the only one for a later fault.
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
    """A livelock is ended by the clock of its phase, all else that hangs by that of its stamps.

    Two that hang at the same time while they write, of which the ledger names no episode, are told apart by it.
    """
    return row["kind"] != "hang" or ("in this phase" in row.get("detail", "")) == (fault["kind"] == "livelock")


def _tells_of(row: dict[str, Any], fault: dict[str, Any], names: dict[str, str]) -> bool:
    same = row["idx"] == fault["idx"] or -1 in (row["idx"], fault["idx"])
    return same and row["kind"] == names[fault["kind"]] and row["time"] >= fault["time"] - _EARLY
