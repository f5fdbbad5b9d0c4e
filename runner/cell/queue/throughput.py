"""How long leases take, as measured so far: what the schedule decides from. Pure."""

from __future__ import annotations

from nimbus.runner.cell.queue.lease import Role

_AT_ONCE_SECONDS, _AT_ONCE = 0.05, 16
"""As long as orders that are given at once may take together [s], and as many as they may be: what is lost with their
worker is made again, and at the end of a run the others wait for it."""


class Throughput:
    """Means over a run; a worker's first order in a role gives the cost of building its half of the chain."""

    def __init__(self) -> None:
        self._first: dict[Role, list[float]] = {role: [] for role in Role}
        self._sum = dict.fromkeys(Role, 0.0)
        self._count = dict.fromkeys(Role, 0)
        self._latest = dict.fromkeys(Role, 0.0)
        self._good = self._bad = 0

    def record(self, role: Role, seconds: float, *, count: int = 1, is_first: bool) -> None:
        """Orders were carried out.

        Args:
            role: What they were for.
            seconds: [s] wall-clock, of all of them.
            count: How many.
            is_first: They were the worker's first in that role, which also builds what it needs.
        """
        if is_first:
            self._first[role].append(seconds)
        else:
            self._sum[role] += seconds
            self._count[role] += count
            self._latest[role] = seconds / count

    def planned(self, good: bool) -> None:
        """A lease for planning led to a plan, or was rejected for good."""
        self._good += good
        self._bad += not good

    def seconds(self, role: Role) -> float:
        """Mean of an order [s]; 0 while nothing is known."""
        if self._count[role]:
            return self._sum[role] / self._count[role]
        first = self._first[role]
        return sum(first) / len(first) if first else 0.0

    def batch_size(self, role: Role) -> int:
        """How many orders in a role are given at once; 1 where they are not known to be short, or are so no more."""
        if not self._count[role]:
            return 1
        seconds = max(self.seconds(role), self._latest[role], 1e-6)
        return max(1, min(_AT_ONCE, int(_AT_ONCE_SECONDS / seconds)))

    @property
    def plan_yield(self) -> float:
        """Share of the leases for planning that gave a plan."""
        total = self._good + self._bad
        return self._good / total if total else 1.0

    @property
    def switch_seconds(self) -> float:
        """What a worker's first lease in a role took longer than others [s]; 0 while that is not known."""
        costs = [
            max(0.0, sum(first) / len(first) - self.seconds(role))
            for role, first in self._first.items()
            if first and self._count[role]
        ]
        return max(costs, default=0.0)
