"""A disk that is full: the run pauses until there is room again, for a while."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nimbus.datagen.errors import StorageError

_LOOK = 0.5
"""[s] Between two looks at a full disk."""
_LEAST = 8 << 20
"""[bytes] that must be free before work is handed out again."""


class DiskWatch:
    """Keeps in mind that the disk is full, and since when.

    Args:
        folder: On the disk.
        patience: [s] to wait for room.
    """

    def __init__(self, folder: Path, *, patience: float) -> None:
        self._folder, self._patience = folder, patience
        self._since: float | None = None
        self._next_look = 0.0
        self._line = ""
        self.largest = 0
        """[bytes] The largest episode so far: what an episode may need."""

    @property
    def is_full(self) -> bool:
        """Nothing is to be handed out."""
        return self._since is not None

    def full(self, now: float, line: str) -> None:
        """Somebody met a full disk.

        Args:
            now: [s] of the monotonic clock.
            line: What it said.
        """
        self._line = line
        if self._since is None:
            self._since, self._next_look = now, now + _LOOK

    @contextmanager
    def guard(self, now: float) -> Iterator[None]:
        """Inside, a full disk is kept in mind instead of raised."""
        try:
            yield
        except StorageError as error:
            self.full(now, str(error))

    def look(self, now: float, *, episodes: int) -> None:
        """See whether there is room again.

        Args:
            now: [s] of the monotonic clock.
            episodes: How many may be written at the same time.
        """
        if self._since is None or now < self._next_look:
            return
        self._next_look = now + _LOOK
        stat = os.statvfs(self._folder)
        if stat.f_bavail * stat.f_frsize >= max(_LEAST, 2 * self.largest * episodes):
            self._since = None

    def complaint(self, now: float) -> str:
        """The line with which the run ends, when the disk has been full for too long; else empty."""
        return self._line if self._since is not None and now - self._since > self._patience else ""
