"""Detection of poison episodes: those with more deaths of workers than the background explains. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum

_CHANCE = 1e-5
"""Of so many deaths in a row at an episode as healthy as the others: with 1e-4 a run of a thousand in which every tenth
lease ended in a death lost 0.3 healthy episodes."""
_LEAST = 3
_MOST = 16
"""Deaths in a row: then it is given up, whatever the background."""
_WORKERS = 2
_SAME = 3
"""Deaths in a row by the very same exception: that comes from the episode or from the code, not from the machine."""


class Action(StrEnum):
    """Next step for an episode whose worker ended at it."""

    RETRY = "retry"
    RETRY_ISOLATED = "retry isolated"
    """Alone, in a worker that has done nothing before: the past of a worker then explains nothing."""
    QUARANTINE = "quarantine"


@dataclass(frozen=True)
class PoisonDecision:
    """The action, and for a quarantine the evidence."""

    action: Action
    evidence: str = ""
    same: str = ""
    """The exception in which every one of its last tries ended, if that is why it is given up."""


@dataclass(frozen=True)
class _Death:
    worker: int
    phase: str
    is_isolated: bool
    same: str


class PoisonDetector:
    """Counts the deaths of workers by episode: unasked ends and hangs, but not a full disk or a requested stop.

    Only the episode that the worker's heartbeat named is charged, not its other leases. Roles are counted apart:
    planning may be safe where rendering is not. Episodes without deaths cost no memory.
    """

    def __init__(self) -> None:
        self._ended: Counter[str] = Counter()
        """Leases by role, of all episodes but the quarantined."""
        self._died: Counter[str] = Counter()
        self._streaks: dict[int, dict[str, list[_Death]]] = {}
        """Deaths in a row, by index and role."""
        self._totals: dict[int, Counter[str]] = {}
        """All deaths by index and role: they are not background for themselves."""
        self._last_role: dict[int, str] = {}

    def record_lease(self, index: int, role: str) -> None:
        """Count a lease that ended well: a plan, or a stored or rejected episode. Deaths before it count no more."""
        self._ended[role] += 1
        if index in self._streaks:
            self._streaks[index].pop(role, None)

    def record_death(
        self, index: int, worker: int, phase: str, *, role: str, is_isolated: bool, same: str = ""
    ) -> None:
        """Count a lease that ended with the worker's death.

        Args:
            index: The episode.
            worker: A number that no other process has; a successor in the same place has another one.
            phase: Phase of the worker's heartbeat.
            role: What the lease was for.
            is_isolated: The worker had done nothing else in its life.
            same: Equal for equal exceptions at the same place; empty where it was none.
        """
        self._ended[role] += 1
        self._died[role] += 1
        self._streaks.setdefault(index, {}).setdefault(role, []).append(_Death(worker, phase, is_isolated, same))
        self._totals.setdefault(index, Counter())[role] += 1
        self._last_role[index] = role

    def deaths(self, index: int) -> int:
        """Number of workers that ended at this episode so far."""
        return sum(self._totals.get(index, Counter()).values())

    def background(self, role: str, *, without: int | None = None) -> float:
        """The share of leases of other episodes that ended in a death, smoothed: one half when nothing is known."""
        own = self._totals.get(without, Counter())[role] if without is not None else 0
        return (self._died[role] - own + 1) / (self._ended[role] - own + 2)

    def verdict(self, index: int) -> PoisonDecision:
        """Decide on an episode; to be called after each of its deaths."""
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
        soon = self._condemns(len(streak) + 1, background)
        return PoisonDecision(Action.RETRY_ISOLATED if soon else Action.RETRY)

    def forget(self, index: int) -> None:
        """Forget a settled episode; its deaths stay in the background."""
        for records in (self._streaks, self._totals, self._last_role):
            records.pop(index, None)

    def remove(self, index: int) -> None:
        """Forget an episode that the ledger has as quarantined; its deaths leave the background."""
        for role, count in self._totals.pop(index, Counter()).items():
            self._ended[role] -= count
            self._died[role] -= count
        self.forget(index)

    @staticmethod
    def _condemns(count: int, background: float) -> bool:
        return count >= _MOST or (count >= _LEAST and background**count < _CHANCE)

    def _words(self, streak: list[_Death], role: str, background: float) -> str:
        return (
            f"{_counted(streak, role)}, the last one alone in a fresh worker; "
            f"elsewhere {background:.1%} of leases end so, by chance {background ** len(streak):.0e}"
        )


def _same_exception(last: list[_Death]) -> str:
    """Exception in which all of these workers ended; empty where they are too few or differ."""
    (same, *others) = {death.same for death in last}
    enough = len(last) == _SAME and len({death.worker for death in last}) >= _WORKERS
    return same if enough and not others else ""


def _counted(streak: list[_Death], role: str) -> str:
    phases = ", ".join(f"{phase} {count}" for phase, count in Counter(d.phase for d in streak).most_common())
    return f"{len(streak)} deaths in a row as {role} on {len({d.worker for d in streak})} workers ({phases})"
