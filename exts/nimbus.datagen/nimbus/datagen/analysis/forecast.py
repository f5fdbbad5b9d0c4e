"""Forecast of a run's duration and size, with an interval, from the first few of its episodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from nimbus.datagen.store.ledger.attempt import Attempt

CONFIDENCE = 0.9
_DRIFT = 0.08
"""Standard deviation of a machine's relative speed between probe and run, caused by heat and other load. On the
shared machines where this was measured, CPU times of identical episodes differed by a fifth within an hour."""
_SLOWER = 1.35
"""Largest ratio of an episode's CPU time in a run to its CPU time in the probe; workers share caches and memory."""


@dataclass(frozen=True, kw_only=True)
class Interval:
    """Expected value, with an interval of probability :data:`CONFIDENCE`."""

    low: float
    expected: float
    high: float

    def scaled(self, factor: float) -> Interval:
        """Return the interval multiplied by a factor."""
        return Interval(low=self.low * factor, expected=self.expected * factor, high=self.high * factor)


@dataclass(frozen=True, kw_only=True)
class RunForecast:
    """Forecast of a run of ``episodes`` episodes."""

    episodes: int
    cores: int
    cpu_seconds: Interval
    """CPU time of all stages, including failed attempts and excluding one-time costs of processes [s]."""
    wall_seconds: Interval
    """Duration of the run [s]."""
    byte_count: Interval
    """Size on disk [bytes]."""
    stored: Interval
    """Number of stored episodes."""
    busy_seconds: dict[str, float] = field(default_factory=dict)
    """Expected time during which each device is busy, by name [s]."""
    bound_by: str = "cores"
    """Resource that determines the duration: ``cores``, or one of ``busy_seconds``."""


def sum_interval(costs: Sequence[float], count: int, *, drift: float = 0.0, confidence: float = CONFIDENCE) -> Interval:
    """Forecast the sum of ``count`` costs from a sample, by Student's t-interval for a new sum.

    The standard deviation is at least a tenth of the mean, because a few equal costs do not prove that all are equal.

    Args:
        costs: Costs of the episodes of the probe.
        count: Number of episodes in the run.
        drift: Standard deviation of a factor shared by all costs of the run.
        confidence: Probability that the sum is inside the interval.
    """
    from scipy.stats import norm
    from scipy.stats import t as student

    known = np.asarray(costs, dtype=float)
    mean = float(known.mean())
    spread = max(float(known.std(ddof=1)) if len(known) > 1 else mean, 0.1 * mean)
    quantile = float(student.ppf(0.5 + confidence / 2, max(1, len(known) - 1)))
    drawn = quantile * spread * float(np.sqrt(1 / len(known) + 1 / count))
    half = float(np.hypot(drawn, norm.ppf(0.5 + confidence / 2) * drift * mean))
    return Interval(low=max(0.0, count * (mean - half)), expected=count * mean, high=count * (mean + half))


def forecast_run(
    attempts: Sequence[Attempt],
    episodes: int,
    *,
    cores: int,
    startup: float,
    busy: Mapping[str, float] | None = None,
) -> RunForecast:
    """Forecast a run from the ledger of a probe that ran in one process.

    Args:
        attempts: Attempts of the probe.
        episodes: Number of episodes of the run.
        cores: Number of cores of the run.
        startup: Time until the probe's first episode began [s].
        busy: Time for which the work of the probe would have kept each device of the run busy [s]: each GPU, and the
            disk.
    """
    from scipy.stats import beta

    costs: dict[int, float] = {}
    sizes: dict[int, int] = {}
    stored: dict[int, bool] = {}
    for attempt in attempts:
        spent = sum(s for name, s in attempt.times.items() if not name.endswith("_wait") and name != "load")
        costs[attempt.idx] = costs.get(attempt.idx, 0.0) + spent
        sizes[attempt.idx] = sizes.get(attempt.idx, 0) + attempt.stored_bytes
        sizes[attempt.idx] += attempt.failure.byte_count if attempt.failure else 0
        stored[attempt.idx] = stored.get(attempt.idx, False) or bool(attempt.path)
    first, *others = costs.values()
    once = max(0.0, first - max(others, default=first))  # one-time costs of a process: caches, kernels, assets
    cpu = sum_interval([first - once, *others], episodes, drift=_DRIFT)
    work = cpu.scaled(1.0 / cores)
    # The slowest episode cannot be split: at the end, the other cores wait for it.
    tail = max([first - once, *others]) if cores > 1 else 0.0
    device_seconds = {name: seconds * episodes / len(costs) for name, seconds in (busy or {}).items()}
    needs = {"cores": work.expected * (1.1 if cores > 1 else 1.0), **device_seconds}
    slowest = max(needs, key=lambda name: needs[name])
    # A device that is slower than the cores determines the duration; its spread is assumed to equal that of the CPU.
    ratio = needs[slowest] / needs["cores"] if needs["cores"] else 1.0
    wall = Interval(
        low=startup * 0.5 + once / 2 + work.low * ratio,
        expected=startup + once + needs[slowest] + tail / 2,
        high=startup * 2.0 + once * 2.0 + work.high * ratio * (_SLOWER if cores > 1 else 1.0) + tail,
    )
    good = sum(stored.values())
    low, high = beta.ppf([(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2], good + 0.9, len(stored) - good + 0.1)
    share = (good + 0.9) / (len(stored) + 1)
    # The interval reaches 0 if the probe stored no episode, and 1 if it lost none.
    low, high = float(low) if good else 0.0, float(high) if good < len(stored) else 1.0
    kept = Interval(low=low, expected=share, high=high).scaled(episodes)
    return RunForecast(
        episodes=episodes,
        cores=cores,
        cpu_seconds=cpu,
        wall_seconds=wall,
        byte_count=sum_interval(list(sizes.values()), episodes),
        stored=kept,
        busy_seconds=device_seconds,
        bound_by=slowest,
    )
