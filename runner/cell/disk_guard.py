"""Guards that pause a run while its disk or its spool is full."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nimbus.datagen.errors import StorageError
from nimbus.datagen.store.publish import storage_error

_LOOK = 0.5
"""Interval between two checks of a full disk [s]."""
_REFILL = 0.8
"""Fraction of the limit below which work continues; the gap keeps the guard from switching at every episode."""
_LEAST = 8 << 20
"""Free space required before work is handed out again [bytes]."""


class SpoolGuard:
    """Tracks whether the spool is full, because its store is unreachable or slower than the run.

    No work is handed out while it is full.

    Args:
        folder: The spool.
        limit: Largest size of the spool [bytes]; 0 for no limit.
    """

    def __init__(self, folder: Path, *, limit: int) -> None:
        self._folder, self._limit = folder, limit
        self._next_look = 0.0
        self.is_full = False
        """True while no work may be handed out."""

    def look(self, now: float) -> bool:
        """Measure the spool if that is due; returns True when it has become full, or has space again.

        Args:
            now: Monotonic time [s].
        """
        if not self._limit or now < self._next_look:
            return False
        from nimbus.datagen.store.remote.uploader import spool_sizes  # loads all modules of the store

        self._next_look = now + _LOOK
        before, waiting = self.is_full, sum(spool_sizes(self._folder))
        self.is_full = waiting >= (self._limit * _REFILL if before else self._limit)
        return self.is_full is not before


class DiskGuard:
    """Tracks whether the disk is full. No work is handed out while it is.

    Args:
        folder: Folder on the disk.
        patience: Longest time to wait for free space [s].
    """

    def __init__(self, folder: Path, *, patience: float) -> None:
        self._folder, self._patience = folder, patience
        self._since: float | None = None
        self._next_look = 0.0
        self._line = ""
        self.is_full = False
        """True while no work may be handed out."""

    def full(self, now: float, line: str) -> None:
        """Record that a write failed for lack of space.

        Args:
            now: Monotonic time [s].
            line: Message of the error.
        """
        self._line = line
        # The wait counts from the first failed write, not from the latest, so that a disk that never accepts a write
        # ends the run.
        if self._since is None:
            self._since = now
        if not self.is_full:
            self.is_full, self._next_look = True, now + _LOOK

    def worked(self) -> None:
        """Record a successful write, which ends the wait; the next full disk starts a new one."""
        if not self.is_full:
            self._since = None

    @contextmanager
    def guard(self, now: float) -> Iterator[None]:
        """Record a :class:`StorageError` of the block instead of raising it."""
        try:
            yield
        except StorageError as error:
            self.full(now, str(error))

    def look(self, now: float, *, needed: int) -> None:
        """Check for free space. A disk that fills up again before a write succeeds continues the same wait.

        Args:
            now: Monotonic time [s].
            needed: Free space required to continue [bytes].
        """
        if not self.is_full or now < self._next_look:
            return
        self._next_look = now + _LOOK
        try:
            stat = os.statvfs(self._folder)
        except OSError as error:  # an unmounted disk may come back: wait as for a full one
            self._line = str(storage_error(error, self._folder))
            return
        # f_bavail, not f_bfree: blocks reserved for root are of no use to this process.
        self.is_full = stat.f_bavail * stat.f_frsize < max(_LEAST, needed)

    def complaint(self, now: float) -> str:
        """Return the message that ends the run when the disk has been full for too long; otherwise an empty text.

        The text is empty while there is free space, however long the first episode after a wait takes.
        """
        return self._line if self.is_full and self._since is not None and now - self._since > self._patience else ""
