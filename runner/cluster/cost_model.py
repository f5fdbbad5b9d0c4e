"""Expected time of episodes by class, from measurements. Pure."""

from __future__ import annotations

from dataclasses import dataclass

_FIRST_SECONDS = 10.0
"""Assumed time of an episode before measurements [s]; a lease then has one or two per slot."""
_PRIOR_WEIGHT = 2.0
"""Number of prior episodes, at the mean of the whole group, in the mean of a class."""


@dataclass(slots=True)
class _Mean:
    total: float = 0.0
    count: int = 0

    def add(self, seconds: float) -> None:
        self.total += seconds
        self.count += 1


class CostModel:
    """Means by cost class, which stay near the mean of all classes while a class has few episodes.

    Args:
        weights: Expected ratio of the classes' costs before measurements, by class.
    """

    def __init__(self, weights: tuple[float, ...] = (1.0,)) -> None:
        self._weights = weights
        self._all = _Mean()
        self._scaled = _Mean()
        """Time [s] divided by the weight of the class."""
        self._by_class: dict[int, _Mean] = {}

    def record(self, cost_class: int, seconds: float) -> None:
        """Record an episode that took ``seconds`` [s] of one slot."""
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
        """Mean of all episodes so far [s]."""
        return self._all.total / self._all.count if self._all.count else _FIRST_SECONDS

    @property
    def total_seconds(self) -> float:
        """Sum of all episodes so far [s]."""
        return self._all.total

    @property
    def is_measured(self) -> bool:
        """True if an episode was measured."""
        return self._all.count > 0
