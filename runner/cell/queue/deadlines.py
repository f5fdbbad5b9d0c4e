"""How long a phase may take: a table at first, then what the run has shown. Pure."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

_SAMPLES = 50
"""Needed before they count."""
_WINDOW = 500
_QUANTILE = 0.99
_FACTOR = 6.0
_SOFT = 0.5
_LATE = 2.0
"""Periods that a loop may be late before it counts as a pause."""
_PAUSES = 64


class Timeliness(StrEnum):
    """Result of a look at a worker's heartbeat."""

    OK = "ok"
    SLOW = "slow"
    """Half of a limit is over: time to write down its stacks."""
    HUNG = "hung"
    """A limit is over: it is to be killed."""


@dataclass(frozen=True)
class PhaseLimits:
    """Of one phase."""

    gap: float
    """[s] since the last heartbeat; catches what hangs."""
    total: float
    """[s] in the phase; catches a worker that has heartbeats and no progress."""


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """What a phase's limits are at the start, and between which they may move."""

    start: PhaseLimits
    floor: PhaseLimits
    """No faster run makes them shorter: a healthy worker on a busy machine must fit in."""
    ceiling: PhaseLimits

    @classmethod
    def fixed(cls, gap: float, total: float) -> Bounds:
        """Limits [s] that are not learned."""
        return cls(start=PhaseLimits(gap, total), floor=PhaseLimits(gap, total), ceiling=PhaseLimits(gap, total))


def _learned(gap: float, total: float, *, least: float, most: tuple[float, float]) -> Bounds:
    return Bounds(start=PhaseLimits(gap, total), floor=PhaseLimits(gap, least), ceiling=PhaseLimits(*most))


CPU: Mapping[str, Bounds] = {
    "start": _learned(60, 120, least=120, most=(120, 300)),
    "load": _learned(30, 120, least=60, most=(120, 600)),
    "randomize": _learned(10, 60, least=30, most=(30, 300)),
    "plan": _learned(10, 120, least=60, most=(30, 600)),
    "render": _learned(10, 600, least=120, most=(30, 3600)),
    "store": _learned(30, 300, least=120, most=(120, 1200)),
    "close": Bounds.fixed(5, 10),
    "order": Bounds.fixed(10, 10),
}
"""Phases that are not here (``wait``, ``none``) have no limits; ``order`` is a ``wait`` in spite of an order.

A gap's floor is its start value: a machine that pages or shares its cores stops healthy workers for seconds, whatever
their usual pace, and a shorter limit would gain little.
"""

ISAAC: Mapping[str, Bounds] = {
    **CPU,
    "start": Bounds.fixed(900, 1800),
    "load": _learned(120, 600, least=300, most=(300, 900)),
    "render": _learned(300, 1800, least=600, most=(600, 7200)),
    "close": Bounds.fixed(30, 60),
}
"""Where instances of Isaac Sim render.

A cold start compiles shaders without heartbeats: eight minutes on an L4. A stage's opening and its first batch
ask for patience of their own (``render/isaacsim``). On the newest GPUs a single update was seen to stall for 20 to
270 s and to go on by itself (IsaacSim issue 729). At the end what replicator still has to write is waited for.
"""

_UNLIMITED = PhaseLimits(math.inf, math.inf)


class ObservedProgress(Protocol):
    """A worker's row of the heartbeat page."""

    @property
    def age_s(self) -> float:
        """[s] since the last heartbeat."""
        ...

    @property
    def in_phase_s(self) -> float:
        """[s] since the phase began."""
        ...

    @property
    def phase(self) -> str:
        """Its name."""
        ...

    @property
    def extended_s(self) -> float:
        """[s] for how much longer the worker has asked for patience."""
        ...


class Amnesty:
    """Time that the machine was paused: it counts for no deadline.

    Args:
        period: [s] between two looks of the watcher's loop.
    """

    def __init__(self, period: float) -> None:
        self._period = period
        self._now: float | None = None
        self._pauses: deque[tuple[float, float]] = deque(maxlen=_PAUSES)

    def late(self, now: float) -> float:
        """Call it at every look, before judging.

        Args:
            now: [s] of the clock of heartbeats.

        Returns:
            Seconds by which this look came late, when that is more than two periods; else 0.
        """
        due = now if self._now is None else self._now + self._period
        self._now = now
        if now - due <= _LATE * self._period:
            return 0.0
        self._pauses.append((due, now))
        return now - due

    def forgiven(self, age: float) -> float:
        """How much of an age [s], as of the last look, fell into pauses.

        A heartbeat after a pause gets nothing for it, one made before gets all of it, and one made in the middle, by
        a worker that was not paused, a part.
        """
        if self._now is None:
            return 0.0
        since = self._now - age
        return sum(max(0.0, end - max(begin, since)) for begin, end in self._pauses)


class Deadlines:
    """The limits of all phases, learned from the run.

    A limit is six times the 99th percentile of the last 500 observations, within its bounds; until 50 are there, the
    start value. It never kills a healthy worker that takes 0.9 of a limit again and again: the limit rises with it.

    Args:
        table: By phase.
        extension_budget: [s] An extension that a worker asked for ends at the latest so long after the total limit.
    """

    def __init__(self, table: Mapping[str, Bounds] = CPU, *, extension_budget: float = 600.0) -> None:
        self._table = dict(table)
        self._budget = extension_budget
        self._gaps = {phase: _Rolling() for phase in table}
        self._totals = {phase: _Rolling() for phase in table}

    def observe(self, phase: str, gap: float, total: float) -> None:
        """Learn from a phase that ended: its largest gap between heartbeats and its length [s]; others are ignored."""
        if phase in self._table:
            self._gaps[phase].add(gap)
            self._totals[phase].add(total)

    def limits(self, phase: str) -> PhaseLimits:
        """As they are now; infinite for a phase that the table does not have."""
        if phase not in self._table:
            return _UNLIMITED
        bounds, gaps, totals = self._table[phase], self._gaps[phase], self._totals[phase]
        if gaps.count < _SAMPLES:
            return bounds.start
        return PhaseLimits(
            gap=min(max(bounds.floor.gap, _FACTOR * gaps.quantile(_QUANTILE)), bounds.ceiling.gap),
            total=min(max(bounds.floor.total, _FACTOR * totals.quantile(_QUANTILE)), bounds.ceiling.total),
        )

    def judge(self, reading: ObservedProgress, *, amnesty: Amnesty | None = None) -> Timeliness:
        """Judge one worker; ``amnesty`` takes pauses off its ages.

        While an extension runs the worker is fine, within the budget; when it is over, the usual limits hold again.
        """
        shares = [used / limit for _, used, limit in self._clocks(reading, amnesty)]
        if max(shares) > 1.0:
            return Timeliness.HUNG
        return Timeliness.SLOW if max(shares) > _SOFT else Timeliness.OK

    def complaint(self, reading: ObservedProgress, *, amnesty: Amnesty | None = None) -> str:
        """The clock that is furthest, in words: "plan: no progress for 10.3 s, at most 10 s"."""
        what, used, limit = max(self._clocks(reading, amnesty), key=lambda clock: clock[1] / clock[2])
        return f"{reading.phase}: {what} for {used:.1f} s, at most {limit:.4g} s"

    def _clocks(self, reading: ObservedProgress, amnesty: Amnesty | None) -> list[tuple[str, float, float]]:
        limits = self.limits(reading.phase)
        forgiven = amnesty.forgiven if amnesty else lambda age: 0.0
        age = reading.age_s - forgiven(reading.age_s)
        in_phase = reading.in_phase_s - forgiven(reading.in_phase_s)
        if reading.extended_s > 0:
            return [("in this phase in spite of an extension", in_phase, limits.total + self._budget)]
        return [("no progress", age, limits.gap), ("in this phase", in_phase, limits.total)]


class _Rolling:
    """The last observations, sorted when a quantile of them is asked for."""

    def __init__(self) -> None:
        self._last: deque[float] = deque(maxlen=_WINDOW)
        self._sorted: list[float] = []

    @property
    def count(self) -> int:
        return len(self._last)

    def add(self, value: float) -> None:
        self._last.append(value)
        self._sorted = []

    def quantile(self, share: float) -> float:
        self._sorted = self._sorted or sorted(self._last)
        return self._sorted[math.ceil(share * len(self._sorted)) - 1]
