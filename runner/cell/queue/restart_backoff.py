"""Delay before the successor of a worker that ended, and the end of all restarts. Pure."""

from __future__ import annotations

import hashlib

_FIRST = 0.5
_LONGEST = 60.0
"""[s]"""
_JITTER = 0.25


def delay(failures: int, *, worker: int = 0) -> float:
    """Delay [s] before the restart after that many unasked ends in a row without a result.

    0 after the first, then 0.5, 1, 2 … 60, shortened by up to a quarter, so that workers that ended together do not
    start together; the same for the same arguments.
    """
    if failures <= 1:
        return 0.0
    # The exponent is bounded before it is used: after a night of failures the number would not fit.
    longest = min(_LONGEST, _FIRST * 2.0 ** min(failures - 2, 16))
    digest = hashlib.sha256(f"{worker}:{failures}".encode()).digest()
    return longest * (1.0 - _JITTER * int.from_bytes(digest[:4], "little") / 0xFFFFFFFF)


class Backoff:
    """One worker's place in the worker pool, over all processes that take it.

    Args:
        worker: Its number; decides the jitter.
    """

    def __init__(self, worker: int) -> None:
        self._worker = worker
        self.failures = 0
        """Unasked ends in a row without a result between them."""

    def record_end(self) -> float:
        """Count a process that ended unasked, and give the delay [s] before the next one starts."""
        self.failures += 1
        return delay(self.failures, worker=self._worker)

    def result(self) -> None:
        """Note a result: the next unasked end is a first one."""
        self.failures = 0


class Circuit:
    """Opens when starting workers leads nowhere, cell-wide: then the run ends with the reason.

    A worker that ends before it takes any work shows that the cell cannot start. One that ends at its first work may
    have met a bad episode, so more of these are needed; ends at an episode that is suspected already are not counted.

    Args:
        start_limit: Start-ups in a row, without a result of any worker between, that ended before any work.
        work_limit: Workers in a row, likewise, that ended at work and gave no result in their life.
        same_limit: Of those, so many that ended in the very same way: a mistake that every episode meets.
        given_up_limit: Episodes in a row, likewise, given up for the very same exception.
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
        """Why it is open; empty while it is closed. It stays open."""

    @property
    def is_open(self) -> bool:
        """No worker is to be started any more."""
        return bool(self.reason)

    def ended(self, how: str, *, at_work: bool, explained: bool = False) -> None:
        """Count a worker that ended and gave no result in its life.

        Args:
            how: For the reason: "killed by SIGSEGV in load".
            at_work: It had begun with an episode.
            explained: A worker had ended at that episode before.
        """
        if explained or self.is_open:
            return
        self._failures[at_work] += 1
        self._same = how, self._same[1] + 1 if how == self._same[0] else 1
        if self._failures[at_work] >= self._limits[at_work] or self._same[1] >= self._same_limit:
            when = "at their first work" if at_work else "before they took any work"
            self.reason = f"{self._failures[at_work]} workers in a row ended {when}, the last one {how}"

    def given_up(self, same: str, how: str, *, last: bool) -> None:
        """Count an episode that was given up because every try ended in the same exception.

        Args:
            same: Equal for equal exceptions.
            how: For the reason: "hover.py:29: AttributeError: pse".
            last: All episodes there are have been given up.
        """
        if self.is_open:
            return
        count = self._given_up[1] + 1 if same == self._given_up[0] else 1
        self._given_up = same, count
        if last or count >= self._given_up_limit:
            self.reason = f"{how}: so ended every try of {count} episode{'s' if count > 1 else ''}, and none is stored"

    def result(self) -> None:
        """Note a result of any worker: a plan, a rejected attempt, or a stored episode."""
        self._same = self._given_up = "", 0
        self._failures = {False: 0, True: 0}
