"""Forecast of an episode's cost and success rate, from a few attempts in physics."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from nimbus.datagen.doctor.case import make_finding
from nimbus.datagen.errors import Diagnostic
from nimbus.datagen.execute.planner import run_attempt
from nimbus.datagen.random_streams import generator
from nimbus.datagen.tasks.steps import walk

if TYPE_CHECKING:
    from nimbus.datagen.doctor.case import Case

_PRIOR = (2.7, 0.3)
"""Numbers of successful and failed attempts that are assumed in advance for any task."""
_RENDER = 2.1e-7
"""CPU time to render all modalities [s/px]; measured on sort_trash at 320 x 240."""
_STORE = 6.3e-8
"""CPU time to compress and write all modalities [s/px]."""
_BYTES = 1.66
"""Size of lossless episodes [bytes/px]."""
_ATTEMPTS = 3
"""Largest number of attempts at one layout in a run."""


@dataclass(frozen=True, kw_only=True)
class EpisodeForecast:
    """Expected yield and cost of an episode."""

    success_rate: float
    """Expected fraction of successful first attempts, 0 to 1."""
    low: float
    high: float
    """Upper end of the range that contains the yield with a probability of 80 %."""
    given_up: float
    """Expected fraction of layouts at which all attempts fail."""
    cpu_seconds: float
    """CPU time of a stored episode [s]."""
    byte_count: float
    """Size of a stored episode [bytes]."""
    length: float
    """Duration of the motion in an episode [s]."""


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """Attempts made by the doctor, and the forecast from them."""

    probes: int
    """Number of first attempts made, at the layouts of indices 0, 1, 2 …"""
    successes: int
    reasons: dict[str, int]
    """Failed probes by phase and reason, the most frequent first."""
    details: dict[str, str] = field(default_factory=dict)
    """Detail of the first failure, by phase and reason."""
    episode: EpisodeForecast | None
    """Forecast of an episode; None if no attempt succeeded, because the assumed attempts alone would determine it."""


BUDGET, LEAST = 5.0, 3
"""CPU time after which no further attempt begins [s], and number of attempts that are made in any case."""


def expected_rate(successes: int, probes: int) -> float:
    """Return the expected fraction of successful first attempts, 0 to 1, from attempts and the prior."""
    return (_PRIOR[0] + successes) / (sum(_PRIOR) + probes)


def forecast(
    case: Case, *, planner: str = "ompl", budget: float = BUDGET, least: int = LEAST, most: int = 12
) -> Forecast:
    """Attempt layouts without rendering until the CPU time is used up.

    Args:
        case: The task.
        planner: Registered name of the motion planner.
        budget: CPU time after which no further attempt begins [s].
        least: Number of attempts that are made regardless of their CPU time.
        most: Largest number of attempts.
    """
    task, simulation = case.task, case.simulation
    reasons: Counter[str] = Counter()
    details: dict[str, str] = {}
    seconds, lengths, begin = [], [], time.process_time()
    for index in range(min(most, len(case.layouts))):
        if index >= least and time.process_time() - begin > budget:
            break
        start = time.process_time()
        streams = partial(generator, case.seed, index, "attempt", 0)
        trajectory = run_attempt(task, simulation, case.layouts[index], streams=streams, planner=planner)
        seconds.append(time.process_time() - start)
        if trajectory.outcome.success:
            lengths.append(trajectory.step_count)
        else:
            reason = f"{trajectory.outcome.phase}: {trajectory.outcome.reason}"
            reasons[reason] += 1
            details.setdefault(reason, trajectory.outcome.detail)
    return Forecast(
        probes=len(seconds),
        successes=len(lengths),
        reasons=dict(reasons.most_common()),
        details=details,
        episode=_expect(case, seconds, lengths) if lengths else None,
    )


def _expect(case: Case, seconds: list[float], lengths: list[int]) -> EpisodeForecast:
    from scipy.stats import beta

    good, bad = _PRIOR[0] + len(lengths), _PRIOR[1] + len(seconds) - len(lengths)
    rate = expected_rate(len(lengths), len(seconds))
    low, high = beta.ppf([0.1, 0.9], good, bad)
    steps = float(np.mean(lengths))
    pixels = steps * sum(settings.size[0] * settings.size[1] for settings in case.task.cameras.values())
    return EpisodeForecast(
        success_rate=rate,
        low=float(low),
        high=float(high),
        given_up=(1 - rate) ** _ATTEMPTS,
        cpu_seconds=float(np.mean(seconds)) / rate + pixels * (_RENDER + _STORE),
        byte_count=pixels * _BYTES,
        length=steps / case.task.rate,
    )


def check_attempts(case: Case, made: Forecast) -> Iterator[Diagnostic]:
    """Report attempts of which none succeeded, at the step or the condition at which most of them failed.

    Args:
        case: The task.
        made: The attempts.
    """
    if made.successes or not made.reasons:
        return
    first = next(iter(made.reasons))
    skill = first.partition(" ")[0].rstrip(":")
    keys = [step.keys for step, _ in walk(case.task.steps) if step.name == skill]
    where = keys[0] if len(keys) == 1 else (("success",) if skill == "success" else ("steps",))
    failed = "; ".join(f"{count} x {reason}" for reason, count in made.reasons.items())
    what = f"none of {made.probes} attempts succeeded: {failed}"
    instead = "change this step, the objects or the regions until an attempt succeeds"
    yield make_finding("attempts", case.task, where, what, instead=instead)
