"""Detection of broken nodes, which the head drains without blaming their episodes. No side effects."""

from __future__ import annotations

import math
from collections import Counter

from nimbus.runner.cluster.node_record import Item

_LEAST_FAULTS = 6
"""Number of faults below which a node is not judged."""
_CHANCE = 1e-6
"""Significance level: a node is broken if a healthy node would have as many faults with a smaller probability."""
_LEAST_RATE = 0.5
"""Smallest fraction of leases that end in faults; a node with a smaller one remains in use."""


class NodeHealth:
    """Counts faults and results by node, to find nodes with many more faults than the others."""

    def __init__(self) -> None:
        self.faults: Counter[str] = Counter()
        """Number of unexpected worker exits and given-up episodes, by node."""
        self.results: Counter[str] = Counter()
        self._fault_total = self._result_total = 0
        self._votes: set[tuple[str, Item]] = set()
        """Pairs of node and episode whose evidence was counted."""

    def record_fault(self, node: str, count: int = 1) -> None:
        """Count faults of a node."""
        self.faults[node] += count
        self._fault_total += count

    def record_result(self, node: str) -> None:
        """Count an episode settled by a node."""
        self.results[node] += 1
        self._result_total += 1

    def record_vote(self, node: str, item: Item) -> None:
        """Count an episode that crashed workers of a node as one fault; repeated messages are not counted."""
        if (node, item) not in self._votes:
            self._votes.add((node, item))
            self.record_fault(node)

    def judge(self, node: str) -> str:
        """Return the evidence against a node in one line; empty if it is insufficient or there is no other node."""
        faults, results = self.faults[node], self.results[node]
        other_faults = self._fault_total - faults
        other_results = self._result_total - results
        if not other_results or faults < _LEAST_FAULTS or faults < _LEAST_RATE * (faults + results):
            return ""
        background = (other_faults + 1) / (other_faults + other_results + 2)
        if _tail(faults, faults + results, background) > _CHANCE:
            return ""
        return f"{faults} faults and {results} results; elsewhere {background:.0%} of leases end in faults"


def _tail(least: int, count: int, probability: float) -> float:
    """Return the binomial probability of at least ``least`` events in ``count`` trials."""
    log_p, log_q = math.log(probability), math.log1p(-probability)
    terms = (
        math.lgamma(count + 1) - math.lgamma(k + 1) - math.lgamma(count - k + 1) + k * log_p + (count - k) * log_q
        for k in range(least, count + 1)
    )
    return min(1.0, sum(map(math.exp, terms)))
