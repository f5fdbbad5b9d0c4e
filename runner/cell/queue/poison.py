"""Detection of poison episodes: those with more worker deaths than the background rate explains. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum

_CHANCE = 1e-5
"""An episode is quarantined when the probability of its consecutive deaths, if it were healthy, is below this. With
1e-4, a run of a thousand episodes in which every tenth lease ended in a death lost 0.3 healthy ones."""
_LEAST = 3
"""Fewest consecutive deaths before a quarantine, however low the background rate; a machine has accidents."""
_MOST = 16
"""Number of consecutive deaths after which an episode is quarantined whatever the background rate."""
_WORKERS = 2
"""Fewest different workers among the deaths, because a single one may itself be damaged."""
_SAME = 3
"""Number of consecutive deaths by the same exception after which an episode is quarantined: they point to the episode
or the code rather than the machine."""


class Action(StrEnum):
    """Next step for an episode at which a worker ended."""

    RETRY = "retry"
    RETRY_ISOLATED = "retry isolated"
    """Retry alone in a fresh worker, so that another death cannot be due to the worker's history."""
    QUARANTINE = "quarantine"


@dataclass(frozen=True)
class PoisonDecision:
    """The next action, with evidence for a quarantine."""

    action: Action
    evidence: str = ""
    same: str = ""
    """Exception that ended each of the last tries, if that is the reason for the quarantine."""


@dataclass(frozen=True)
class _Death:
    worker: int
    phase: str
    is_isolated: bool
    same: str


class PoisonDetector:
    """Counts worker deaths by episode: unexpected exits and hangs, not full disks or requested stops.

    Only the episode in the worker's heartbeat is charged, not its other leases. Roles are counted separately, because
    planning may be safe where rendering is not. Episodes without deaths use no memory.
    """

    def __init__(self) -> None:
        self._ended: Counter[str] = Counter()
        """Number of leases by role, without those of quarantined episodes."""
        self._died: Counter[str] = Counter()
        self._streaks: dict[int, dict[str, list[_Death]]] = {}
        """Consecutive deaths by index and role."""
        self._totals: dict[int, Counter[str]] = {}
        """All deaths by index and role, which are subtracted from an episode's own background rate."""
        self._last_role: dict[int, str] = {}

    def record_lease(self, index: int, role: str) -> None:
        """Count a lease that ended with a plan or a settled episode; it resets the episode's consecutive deaths."""
        self._ended[role] += 1
        if index in self._streaks:
            self._streaks[index].pop(role, None)

    def record_death(
        self, index: int, worker: int, phase: str, *, role: str, is_isolated: bool, same: str = ""
    ) -> None:
        """Count a lease that ended with the worker's death.

        Args:
            index: The episode.
            worker: Number unique to the process; a successor in the same row has another one.
            phase: Phase of the worker's heartbeat.
            role: Role of the lease.
            is_isolated: True when the worker had done nothing else.
            same: Digest equal for equal exceptions at the same position; empty without an exception.
        """
        self._ended[role] += 1
        self._died[role] += 1
        self._streaks.setdefault(index, {}).setdefault(role, []).append(_Death(worker, phase, is_isolated, same))
        self._totals.setdefault(index, Counter())[role] += 1
        self._last_role[index] = role

    def deaths(self, index: int) -> int:
        """Return the number of workers that have died at this episode."""
        return sum(self._totals.get(index, Counter()).values())

    def background(self, role: str, *, without: int | None = None) -> float:
        """Return the smoothed death rate of leases of other episodes; one half without data."""
        own = self._totals.get(without, Counter())[role] if without is not None else 0
        # Laplace's rule of succession: without data the rate is one half, so that the first deaths of a run quarantine
        # nothing. The episode's own deaths are left out, because the test compares them with this rate.
        return (self._died[role] - own + 1) / (self._ended[role] - own + 2)

    def observed(self, role: str) -> float:
        """Return the fraction of leases that ended with a death; 0 without data."""
        return self._died[role] / max(1, self._ended[role])

    def verdict(self, index: int) -> PoisonDecision:
        """Decide on an episode; called after each of its deaths."""
        role = self._last_role.get(index, "")
        streak = self._streaks.get(index, {}).get(role, [])
        if not streak:
            return PoisonDecision(Action.RETRY)
        background = self.background(role, without=index)
        if same := _same_exception(streak[-_SAME:]):
            return PoisonDecision(
                Action.QUARANTINE, f"{_counted(streak, role)}, the last {_SAME} in the same exception", same
            )
        if self._condemns(len(streak), background):
            workers = {death.worker for death in streak}
            if streak[-1].is_isolated and len(workers) >= _WORKERS:
                return PoisonDecision(Action.QUARANTINE, self._words(streak, role, background))
            return PoisonDecision(Action.RETRY_ISOLATED)
        # If one more death would lead to a quarantine, the next try is isolated, so that the decisive death occurs in a
        # fresh worker.
        soon = self._condemns(len(streak) + 1, background)
        return PoisonDecision(Action.RETRY_ISOLATED if soon else Action.RETRY)

    def forget(self, index: int) -> None:
        """Forget a settled episode; its deaths stay in the background rate."""
        for records in (self._streaks, self._totals, self._last_role):
            records.pop(index, None)

    def remove(self, index: int) -> None:
        """Forget an episode that is quarantined in the ledger; its deaths leave the background rate."""
        for role, count in self._totals.pop(index, Counter()).items():
            self._ended[role] -= count
            self._died[role] -= count
        self.forget(index)

    @staticmethod
    def _condemns(count: int, background: float) -> bool:
        # At a healthy episode the deaths are independent, so their joint probability is the product.
        return count >= _MOST or (count >= _LEAST and background**count < _CHANCE)

    def _words(self, streak: list[_Death], role: str, background: float) -> str:
        return (
            f"{_counted(streak, role)}, the last one alone in a fresh worker; "
            f"elsewhere {background:.1%} of leases end in a death; the probability of this by chance is "
            f"{background ** len(streak):.0e}"
        )


def _same_exception(last: list[_Death]) -> str:
    """Return the exception that ended all of these workers; empty when they are too few or differ."""
    # A death without an exception has an empty digest, which never counts as the same one.
    (same, *others) = {death.same for death in last}
    enough = len(last) == _SAME and len({death.worker for death in last}) >= _WORKERS
    return same if enough and not others else ""


def _counted(streak: list[_Death], role: str) -> str:
    phases = ", ".join(f"{phase} {count}" for phase, count in Counter(d.phase for d in streak).most_common())
    return f"{len(streak)} deaths in a row as {role} on {len({d.worker for d in streak})} workers ({phases})"
