"""Expected time of episodes by cost class, estimated from measurements. No side effects."""

from __future__ import annotations

from dataclasses import dataclass

_FIRST_SECONDS = 10.0
"""Assumed time of an episode before the first measurement [s]; leases then contain one or two episodes per slot."""
_PRIOR_WEIGHT = 2.0
"""Weight of the group's mean in the mean of a class, as a number of episodes."""


@dataclass(slots=True)
class _Mean:
    total: float = 0.0
    count: int = 0

    def add(self, seconds: float) -> None:
        self.total += seconds
        self.count += 1


class CostModel:
    """Mean time by cost class; while a class has few episodes, its mean stays near that of the whole group.

    Args:
        weights: Relative cost of each class before measurements.
    """

    def __init__(self, weights: tuple[float, ...] = (1.0,)) -> None:
        self._weights = weights
        self._all = _Mean()
        self._scaled = _Mean()
        """Time [s] divided by the weight of the class."""
        self._by_class: dict[int, _Mean] = {}

    def record(self, cost_class: int, seconds: float) -> None:
        """Record an episode that took ``seconds`` [s] on one slot."""
        self._all.add(seconds)
        self._scaled.add(seconds / self._weights[cost_class])
        self._by_class.setdefault(cost_class, _Mean()).add(seconds)

    def seconds(self, cost_class: int) -> float:
        """Return the expected time of an episode of a class on one slot [s]."""
        base = self._scaled.total / self._scaled.count if self._scaled.count else _FIRST_SECONDS
        prior = base * self._weights[cost_class]
        own = self._by_class.get(cost_class)
        if own is None:
            return prior
        return (own.total + _PRIOR_WEIGHT * prior) / (own.count + _PRIOR_WEIGHT)

    @property
    def mean_seconds(self) -> float:
        """Mean time of the measured episodes on one slot [s]; a default before the first one."""
        return self._all.total / self._all.count if self._all.count else _FIRST_SECONDS

    @property
    def total_seconds(self) -> float:
        """Total time of the measured episodes on one slot [s]."""
        return self._all.total
