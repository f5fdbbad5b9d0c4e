"""Backoff between restarts of workers, and the circuit breaker that ends them."""

from __future__ import annotations

import hashlib

_FIRST = 0.5
"""First delay that is not zero [s]."""
_LONGEST = 60.0
"""Longest delay [s]."""
_JITTER = 0.25
"""Largest fraction by which a delay is shortened."""


def delay(failures: int, *, worker: int = 0) -> float:
    """Return the delay [s] before a restart, after a number of consecutive unexpected exits without a result.

    The delay is 0 after the first exit, then 0.5, 1, 2 … 60, shortened by up to a quarter so that workers that ended
    together do not start together. Equal arguments give equal delays.
    """
    # The first exit may be an accident, and its replacement should not wait.
    if failures <= 1:
        return 0.0
    # The exponent is bounded first, because 2.0**failures overflows after a night of failures.
    longest = min(_LONGEST, _FIRST * 2.0 ** min(failures - 2, 16))
    digest = hashlib.sha256(f"{worker}:{failures}".encode()).digest()
    return longest * (1.0 - _JITTER * int.from_bytes(digest[:4], "little") / 0xFFFFFFFF)


class Backoff:
    """Restart delays of one row of the worker pool, across all processes that occupy it.

    Args:
        worker: Number of the row; decides the jitter.
    """

    def __init__(self, worker: int) -> None:
        self._worker = worker
        self.failures = 0
        """Number of consecutive unexpected exits without a result in between."""

    def record_end(self) -> float:
        """Count an unexpected exit; return the delay [s] before the next process starts."""
        self.failures += 1
        return delay(self.failures, worker=self._worker)

    def result(self) -> None:
        """Record a result, which resets the number of exits."""
        self.failures = 0


class Circuit:
    """Circuit breaker for restarts in the whole cell; once open, the run ends with its reason.

    A worker that exits before it takes work shows that the cell cannot start. One that exits at its first work may have
    met a bad episode, so more of these are needed; exits at an already suspected episode are not counted.

    Args:
        start_limit: Number of exits before any work, without a result of any worker in between, that stop the run.
        work_limit: Number of workers that exited at work, without any result, after which the run stops.
        same_limit: Number of consecutive exits with the same description that stop the run, because they suggest an
            error that every episode meets.
        given_up_limit: Number of episodes quarantined for the identical exception after which the run stops.
    """

    def __init__(
        self, *, start_limit: int = 5, work_limit: int = 20, same_limit: int = 6, given_up_limit: int = 3
    ) -> None:
        self._limits = {False: start_limit, True: work_limit}
        self._same_limit, self._given_up_limit = same_limit, given_up_limit
        self._given_up: tuple[str, int] = "", 0
        self._same: tuple[str, int] = "", 0
        self._failures = {False: 0, True: 0}
        self.reason = ""
        """Reason for opening; empty while it is closed. It never closes again."""

    @property
    def is_open(self) -> bool:
        """True when no further worker may be started."""
        return bool(self.reason)

    def ended(self, how: str, *, at_work: bool, explained: bool = False) -> None:
        """Count a worker that ended without ever giving a result.

        Args:
            how: Description for the reason: "killed by SIGSEGV in load".
            at_work: True when it had begun an episode.
            explained: True when a worker had ended at that episode before.
        """
        if explained or self.is_open:
            return
        # Exits before work and at work have separate limits; the limit of identical exits applies to both together.
        self._failures[at_work] += 1
        self._same = how, self._same[1] + 1 if how == self._same[0] else 1
        if self._failures[at_work] >= self._limits[at_work] or self._same[1] >= self._same_limit:
            when = "at their first work" if at_work else "before they took any work"
            self.reason = f"{self._failures[at_work]} workers in a row ended {when}, the last one {how}"

    def given_up(self, same: str, how: str, *, last: bool) -> None:
        """Count an episode that was quarantined because every try ended in the same exception.

        Args:
            same: Digest equal for equal exceptions.
            how: Description for the reason: "hover.py:29: AttributeError: pse".
            last: True when all remaining episodes have been quarantined.
        """
        if self.is_open:
            return
        count = self._given_up[1] + 1 if same == self._given_up[0] else 1
        self._given_up = same, count
        if last or count >= self._given_up_limit:
            self.reason = (
                f"{how}: every try of {count} episode{'s' if count > 1 else ''} ended with it, and none is stored"
            )

    def open(self, reason: str) -> None:
        """Open the circuit for another reason, such as a machine without GPUs left."""
        self.reason = self.reason or reason

    def result(self) -> None:
        """Record a result of any worker: a plan, a rejected attempt, or a stored episode."""
        self._same = self._given_up = "", 0
        self._failures = {False: 0, True: 0}
