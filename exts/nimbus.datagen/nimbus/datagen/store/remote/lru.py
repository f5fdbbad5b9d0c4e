"""Byte budget of data downloaded from stores: the least recently used entries are removed first."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
from contextlib import suppress
from pathlib import Path

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.own_files import open_shared, remove_file
from nimbus.datagen.store.remote.cache_root import COPIES, remote_root

BUDGET = "NIMBUS_CACHE_BYTES"
"""Environment variable with the budget, such as ``200GB``."""
_SHARE = 0.25
"""Default budget, as a fraction of the free disk."""
_LOOK = 0.02
"""Fraction of the budget that may be added before the sizes on disk are counted again."""
_LOW = 0.9
"""Fraction of the budget that remains after a removal."""
ENTRIES = ("episodes", "failures", "shards", "blocks")
"""Folders of removable entries; descriptions and ledgers stay."""
_UNITS = {"": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


class ByteBudget:
    """Bytes added since the last count, and removal of the oldest entries."""

    def __init__(self) -> None:
        self._added: float | None = None

    def add(self, byte_count: int) -> None:
        """Record a new entry; remove old ones when due."""
        budget = cache_budget()
        self._added = (budget if self._added is None else self._added) + byte_count
        if self._added > budget * _LOOK:
            self._added = 0.0
            remove_oldest(budget)


def cache_budget() -> int:
    """Return the largest total size of the entries [bytes].

    Raises:
        InputError: The environment variable is not a size.
    """
    given = os.environ.get(BUDGET, "")
    if not given:
        return int((shutil.disk_usage(remote_root()).free + 1) * _SHARE)
    match = re.fullmatch(r"([0-9]{1,9})(|kB|MB|GB|TB)", given)
    if match is None:
        raise InputError(
            f"'{given}' is not a size",
            where=BUDGET,
            instead="write a whole number with kB, MB, GB or TB, such as 200GB",
        )
    return int(match[1]) * _UNITS[match[2]]


def remove_oldest(budget: int) -> int:
    """Remove the oldest entries until the rest fits, in one process at a time; return the remaining bytes."""
    lock = open_shared(remote_root() / "evict.lock")
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return budget
        entries = sorted(_entries())
        total = sum(size for _, size, _ in entries)
        if total <= budget:
            return total
        for _, size, path in entries:
            if total <= budget * _LOW:
                break
            with suppress(OSError):
                remove_file(path)
                total -= size
        return total
    finally:
        os.close(lock)


def _entries() -> list[tuple[float, int, str]]:
    """List time of last use [s since 1970], size [bytes] and path of every entry."""
    found: list[tuple[float, int, str]] = []
    for copy in (remote_root() / COPIES).glob("*"):
        for kind in ENTRIES:
            for place, _, names in os.walk(copy / kind):
                for name in names:
                    with suppress(OSError):
                        state = os.stat(path := os.path.join(place, name))
                        found.append((state.st_mtime, state.st_size, path))
    return found


def note_use(path: Path) -> None:
    """Record the use of an entry."""
    with suppress(OSError):
        os.utime(path)
