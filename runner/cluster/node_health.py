"""Health of nodes: a node that fails everything is drained, and none of its episodes is charged. Pure."""

from __future__ import annotations

import math
from collections import Counter

from nimbus.runner.cluster.node_record import Item

_LEAST_FAULTS = 6
_CHANCE = 1e-6
"""Probability of a healthy node's faults below which a node counts as unhealthy."""
_LEAST_RATE = 0.5
"""Fraction of a node's leases that end in faults below which it remains in use."""


class NodeHealth:
    """Counts of faults and results by node, to find nodes whose rate of faults is far above the others'."""

    def __init__(self) -> None:
        self.faults: Counter[str] = Counter()
        """Number of unexpected worker exits and given-up episodes, by node."""
        self.results: Counter[str] = Counter()
        self._votes: set[tuple[str, Item]] = set()
        """Pairs of node and episode of counted evidence."""

    def record_fault(self, node: str, count: int = 1) -> None:
        """Count faults of a node."""
        self.faults[node] += count

    def record_result(self, node: str) -> None:
        """Count an episode settled by a node."""
        self.results[node] += 1

    def record_vote(self, node: str, item: Item) -> None:
        """Count an episode that a node considers poison as a fault, once however often it is sent."""
        if (node, item) not in self._votes:
            self._votes.add((node, item))
            self.record_fault(node)

    def judge(self, node: str) -> str:
        """Return the evidence against a node in one line; empty if it is insufficient or cannot be compared."""
        faults, results = self.faults[node], self.results[node]
        other_faults = self.faults.total() - faults
        other_results = self.results.total() - results
        if not other_results or faults < _LEAST_FAULTS or faults < _LEAST_RATE * (faults + results):
            return ""
        background = (other_faults + 1) / (other_faults + other_results + 2)
        if _tail(faults, faults + results, background) > _CHANCE:
            return ""
        return f"{faults} faults and {results} results; elsewhere {background:.0%} of leases end in faults"


def _tail(least: int, count: int, probability: float) -> float:
    """Return the probability of at least ``least`` events among ``count``: binomial."""
    log_p, log_q = math.log(probability), math.log1p(-probability)
    terms = (
        math.lgamma(count + 1) - math.lgamma(k + 1) - math.lgamma(count - k + 1) + k * log_p + (count - k) * log_q
        for k in range(least, count + 1)
    )
    return min(1.0, sum(map(math.exp, terms)))
