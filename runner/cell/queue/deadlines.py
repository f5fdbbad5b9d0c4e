"""Deadlines of phases: initial limits from a table, then limits learned from the run. Pure."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

_SAMPLES = 50
"""Observations needed before limits are learned from them."""
_WINDOW = 500
"""Number of latest observations that limits are learned from."""
_QUANTILE = 0.99
"""Quantile of the observations that a limit is derived from; the maximum would follow a single outlier."""
_FACTOR = 6.0
"""Factor between that quantile and the limit."""
_SOFT = 0.5
"""Fraction of a limit after which a worker counts as slow and its stacks are recorded."""
_LATE = 2.0
"""Delay, in periods of the loop, above which an iteration counts as a pause of the machine."""
_PAUSES = 64
"""Number of pauses remembered."""


class Timeliness(StrEnum):
    """Verdict on a worker's heartbeat."""

    OK = "ok"
    SLOW = "slow"
    """Half of a limit has passed; the worker's stacks are recorded."""
    HUNG = "hung"
    """A limit has passed; the worker is killed."""


@dataclass(frozen=True)
class PhaseLimits:
    """Time limits of one phase."""

    gap: float
    """Longest time between heartbeats [s]; catches hangs."""
    total: float
    """Longest time in the phase [s]; catches workers with heartbeats but no progress."""


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """Initial limits of a phase, and the range in which learned limits stay."""

    start: PhaseLimits
    floor: PhaseLimits
    """Lower bound: a healthy worker on a busy machine must stay below its limits."""
    ceiling: PhaseLimits

    @classmethod
    def fixed(cls, gap: float, total: float) -> Bounds:
        """Return limits [s] that are not learned."""
        return cls(start=PhaseLimits(gap, total), floor=PhaseLimits(gap, total), ceiling=PhaseLimits(gap, total))


def _learned(gap: float, total: float, *, least: float, most: tuple[float, float]) -> Bounds:
    return Bounds(start=PhaseLimits(gap, total), floor=PhaseLimits(gap, least), ceiling=PhaseLimits(*most))


CPU: Mapping[str, Bounds] = {
    "start": _learned(300, 600, least=600, most=(600, 900)),
    "load": _learned(30, 120, least=60, most=(120, 600)),
    "randomize": _learned(10, 60, least=30, most=(30, 300)),
    "plan": _learned(10, 120, least=60, most=(30, 600)),
    "render": _learned(10, 600, least=120, most=(30, 3600)),
    "store": _learned(30, 300, least=120, most=(120, 1200)),
    "close": Bounds.fixed(5, 10),
    "order": Bounds.fixed(10, 10),
}
"""Limits by phase on the CPU.

Phases without an entry (``wait``, ``none``) are unlimited; ``order`` limits the time until a waiting worker reacts to
an order.

A worker that starts sends no heartbeats. Where it is not forked, it imports the libraries and loads the job meanwhile:
9 CPU-seconds, which took 50 s on two cores at a load of 9.

The floor of a gap is its initial value: a machine that pages or shares its cores stops healthy workers for seconds,
however fast they usually are, and a shorter limit would gain little."""

ISAAC: Mapping[str, Bounds] = {
    **CPU,
    "start": Bounds.fixed(900, 1800),
    "load": _learned(120, 600, least=300, most=(300, 900)),
    "render": _learned(300, 1800, least=600, most=(600, 7200)),
    "close": Bounds.fixed(30, 60),
}
"""Limits by phase where Isaac Sim instances render.

A cold start compiles shaders without heartbeats: eight minutes on an L4. Opening a stage and rendering its first batch
extend their limits themselves (``render/isaacsim``). On the newest GPUs a single update was observed to stall for 20 to
270 s and then continue (IsaacSim issue 729). The close includes the pending writes of replicator."""

_UNLIMITED = PhaseLimits(math.inf, math.inf)


class ObservedProgress(Protocol):
    """Progress of a worker as its heartbeat row shows it."""

    @property
    def age_s(self) -> float:
        """Time since the last heartbeat [s]."""
        ...

    @property
    def in_phase_s(self) -> float:
        """Time since the phase began [s]."""
        ...

    @property
    def phase(self) -> str:
        """Name of the phase."""
        ...

    @property
    def extended_s(self) -> float:
        """Remaining extension that the worker has requested [s]."""
        ...


class Amnesty:
    """Pauses of the machine, which count toward no deadline.

    Args:
        period: Interval between two iterations of the watching loop [s].
    """

    def __init__(self, period: float) -> None:
        self._period = period
        self._now: float | None = None
        self._pauses: deque[tuple[float, float]] = deque(maxlen=_PAUSES)

    def late(self, now: float) -> float:
        """Record an iteration of the loop; called at each one, before workers are judged.

        Args:
            now: Time on the clock of the heartbeats [s].

        Returns:
            Delay of this iteration when it exceeds two periods [s]; otherwise 0.
        """
        due = now if self._now is None else self._now + self._period
        self._now = now
        # If this loop was late, so were the workers: the machine was suspended, or out of cores or memory.
        if now - due <= _LATE * self._period:
            return 0.0
        self._pauses.append((due, now))
        return now - due

    def forgiven(self, age: float) -> float:
        """Return the part of an age that fell into pauses [s], as of the last iteration.

        For a heartbeat before a pause, this is the whole pause; for a heartbeat after the pause, it is zero. A
        heartbeat during the pause, from a worker that was not paused, counts the rest of the pause.
        """
        if self._now is None:
            return 0.0
        since = self._now - age
        return sum(max(0.0, end - max(begin, since)) for begin, end in self._pauses)


class Deadlines:
    """Limits of all phases, learned from the run.

    A limit is six times the 99th percentile of the last 500 observations, within its bounds; before 50 observations,
    the initial value. A healthy worker that repeatedly takes 0.9 of a limit is never killed: the limit rises with it.

    Args:
        table: Bounds by phase.
        extension_budget: Longest time that an extension may exceed the total limit [s].
    """

    def __init__(self, table: Mapping[str, Bounds] = CPU, *, extension_budget: float = 600.0) -> None:
        self._table = dict(table)
        self._budget = extension_budget
        self._gaps = {phase: _Rolling() for phase in table}
        self._totals = {phase: _Rolling() for phase in table}

    def observe(self, phase: str, gap: float, total: float) -> None:
        """Learn the largest heartbeat gap and the duration [s] of a completed phase; unknown phases are ignored."""
        if phase in self._table:
            self._gaps[phase].add(gap)
            self._totals[phase].add(total)

    def limits(self, phase: str) -> PhaseLimits:
        """Return the current limits of a phase; infinite for an unknown one."""
        if phase not in self._table:
            return _UNLIMITED
        bounds, gaps, totals = self._table[phase], self._gaps[phase], self._totals[phase]
        # With few samples the quantile is just the largest one.
        if gaps.count < _SAMPLES:
            return bounds.start
        return PhaseLimits(
            gap=min(max(bounds.floor.gap, _FACTOR * gaps.quantile(_QUANTILE)), bounds.ceiling.gap),
            total=min(max(bounds.floor.total, _FACTOR * totals.quantile(_QUANTILE)), bounds.ceiling.total),
        )

    def judge(self, reading: ObservedProgress, *, amnesty: Amnesty | None = None) -> Timeliness:
        """Judge one worker, with pauses subtracted from its ages when ``amnesty`` is given.

        While an extension runs, the worker is OK within the budget; afterwards the usual limits apply.
        """
        shares = [used / limit for _, used, limit in self._clocks(reading, amnesty)]
        if max(shares) > 1.0:
            return Timeliness.HUNG
        return Timeliness.SLOW if max(shares) > _SOFT else Timeliness.OK

    def complaint(self, reading: ObservedProgress, *, amnesty: Amnesty | None = None) -> str:
        """Describe the clock closest to its limit: "plan: no progress for 10.3 s, at most 10 s"."""
        what, used, limit = max(self._clocks(reading, amnesty), key=lambda clock: clock[1] / clock[2])
        return f"{reading.phase}: {what} for {used:.1f} s, at most {limit:.4g} s"

    def _clocks(self, reading: ObservedProgress, amnesty: Amnesty | None) -> list[tuple[str, float, float]]:
        limits = self.limits(reading.phase)
        forgiven = amnesty.forgiven if amnesty else lambda age: 0.0
        # Both clocks are corrected separately, because a pause may lie before the last heartbeat but inside the phase.
        age = reading.age_s - forgiven(reading.age_s)
        in_phase = reading.in_phase_s - forgiven(reading.in_phase_s)
        if reading.extended_s > 0:
            return [("in this phase, extension included,", in_phase, limits.total + self._budget)]
        return [("no progress", age, limits.gap), ("in this phase", in_phase, limits.total)]


class _Rolling:
    """Sliding window of observations; sorted only when a quantile is requested."""

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
