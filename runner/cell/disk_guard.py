"""A disk that is full: the run pauses until there is room again, for a while."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nimbus.datagen.errors import StorageError
from nimbus.datagen.store.publish import storage_error

_LOOK = 0.5
"""[s] Between two looks at a full disk."""
_LEAST = 8 << 20
"""[bytes] that must be free before work is handed out again."""


class DiskGuard:
    """Notes that the disk is full, and since when; until there is room, nothing is handed out.

    Args:
        folder: On the disk.
        patience: [s] to wait for room.
    """

    def __init__(self, folder: Path, *, patience: float) -> None:
        self._folder, self._patience = folder, patience
        self._since: float | None = None
        self._next_look = 0.0
        self._line = ""
        self.is_full = False
        """Nothing is to be handed out."""

    def full(self, now: float, line: str) -> None:
        """Somebody met a full disk.

        Args:
            now: [s] of the monotonic clock.
            line: Message of the error.
        """
        self._line = line
        if self._since is None:
            self._since = now
        if not self.is_full:
            self.is_full, self._next_look = True, now + _LOOK

    def worked(self) -> None:
        """Something was written: if the disk is full again, that is another time."""
        if not self.is_full:
            self._since = None

    @contextmanager
    def guard(self, now: float) -> Iterator[None]:
        """Inside, a full disk is kept in mind instead of raised."""
        try:
            yield
        except StorageError as error:
            self.full(now, str(error))

    def look(self, now: float, *, needed: int) -> None:
        """See whether there is room again; if the disk is full again before anything worked, the same patience goes on.

        Args:
            now: [s] of the monotonic clock.
            needed: [bytes] to go on with.
        """
        if not self.is_full or now < self._next_look:
            return
        self._next_look = now + _LOOK
        try:
            stat = os.statvfs(self._folder)
        except OSError as error:  # it is gone: a disk may come back
            self._line = str(storage_error(error, self._folder))
            return
        self.is_full = stat.f_bavail * stat.f_frsize < max(_LEAST, needed)

    def complaint(self, now: float) -> str:
        """The line with which the run ends, when the disk has been full for too long; else empty.

        While there is room nobody complains: the first episode after a wait takes as long as it takes.
        """
        return self._line if self.is_full and self._since is not None and now - self._since > self._patience else ""
