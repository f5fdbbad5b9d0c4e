"""Measured durations of leases, from which the scheduler decides. Pure."""

from __future__ import annotations

from nimbus.runner.cell.queue.lease import Role

_AT_ONCE_SECONDS, _AT_ONCE = 0.05, 16
"""Longest total duration of a batch of orders [s], and their largest number. A batch is made again when its worker is
lost, and other workers wait for it at the end of a run."""


class Throughput:
    """Mean durations over a run; a worker's first order in a role gives the cost of building its half of the chain."""

    def __init__(self) -> None:
        self._first: dict[Role, list[float]] = {role: [] for role in Role}
        self._sum = dict.fromkeys(Role, 0.0)
        self._count = dict.fromkeys(Role, 0)
        self._latest = dict.fromkeys(Role, 0.0)
        self._good = self._bad = 0

    def record(self, role: Role, seconds: float, *, count: int = 1, is_first: bool) -> None:
        """Record completed orders.

        Args:
            role: Role of the orders.
            seconds: Total wall-clock time [s].
            count: Number of orders.
            is_first: True for the worker's first orders in that role, which include building its components.
        """
        if is_first:
            # First orders are kept apart: they include building components, and would hide how short later orders are.
            self._first[role].append(seconds)
        else:
            self._sum[role] += seconds
            self._count[role] += count
            self._latest[role] = seconds / count

    def planned(self, good: bool) -> None:
        """Record a planning lease that led to a plan, or one that was rejected for good."""
        self._good += good
        self._bad += not good

    def seconds(self, role: Role) -> float:
        """Return the mean duration of an order [s]; 0 while unknown."""
        if self._count[role]:
            return self._sum[role] / self._count[role]
        first = self._first[role]
        return sum(first) / len(first) if first else 0.0

    def count(self, role: Role) -> int:
        """Return the number of orders that the mean duration is measured from."""
        return self._count[role] or len(self._first[role])

    def batch_size(self, role: Role) -> int:
        """Return the number of orders to give at once; more than 1 only while orders are measured to be short."""
        if not self._count[role]:
            return 1
        # The mean and the latest order: one long order ends batches at once, and the floor avoids a division by zero.
        seconds = max(self.seconds(role), self._latest[role], 1e-6)
        return max(1, min(_AT_ONCE, int(_AT_ONCE_SECONDS / seconds)))

    @property
    def plan_yield(self) -> float:
        """Fraction of planning leases that gave a plan."""
        total = self._good + self._bad
        return self._good / total if total else 1.0

    @property
    def switch_seconds(self) -> float:
        """Additional duration of a worker's first lease in a role [s]; 0 while unknown."""
        costs = [
            max(0.0, sum(first) / len(first) - self.seconds(role))
            for role, first in self._first.items()
            if first and self._count[role]
        ]
        return max(costs, default=0.0)
