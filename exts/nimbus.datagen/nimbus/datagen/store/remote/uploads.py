"""List of a spool's objects in the store, which the uploading process keeps beside the ledger."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from nimbus.datagen.errors import StorageError
from nimbus.datagen.store.ledger.attempt import Attempt, has_size
from nimbus.datagen.store.remote.cache_root import SPOOLS, stands_for

FILE_NAME = "uploads.sqlite"


class Uploads:
    """Objects of one dataset acknowledged by the store. Thread-safe.

    Args:
        folder: The spool.
        read_only: True if another process writes.
    """

    def __init__(self, folder: Path, *, read_only: bool = False) -> None:
        self.path = folder / FILE_NAME
        self._version = 0
        self._lock = threading.Lock()  # there is one connection, in which SQLite allows no nested transactions
        if read_only:
            uri = f"{self.path.absolute().as_uri()}?mode=ro"
            self._connection = sqlite3.connect(uri, uri=True, check_same_thread=False, isolation_level=None)
            return
        with _using(self.path):
            self._connection = sqlite3.connect(self.path, check_same_thread=False, isolation_level=None)
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = FULL")
            self._connection.execute(
                "CREATE TABLE IF NOT EXISTS objects (name TEXT PRIMARY KEY, byte_count INTEGER NOT NULL) WITHOUT ROWID"
            )

    def add(self, objects: Iterable[tuple[str, int]]) -> None:
        """Record names and sizes [bytes] of stored objects; they are durable on return.

        Raises:
            StorageError: The disk is full.
        """
        self._change("INSERT OR REPLACE INTO objects VALUES (?, ?)", objects)

    def remove(self, names: Iterable[str]) -> None:
        """Remove the names of objects that no longer exist."""
        self._change("DELETE FROM objects WHERE name = ?", ((name,) for name in names))

    def has(self, name: str) -> bool:
        """Return True if an object exists."""
        with _using(self.path), self._lock:
            return self._connection.execute("SELECT 1 FROM objects WHERE name = ?", (name,)).fetchone() is not None

    def has_changed(self) -> bool:
        """Return True if another connection has changed the names since the last call."""
        with _using(self.path), self._lock:
            version = int(self._connection.execute("PRAGMA data_version").fetchone()[0])
        before, self._version = self._version, version
        return before not in (0, version)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _change(self, statement: str, rows: Iterable[tuple[str | int, ...]]) -> None:
        with _using(self.path), self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                self._connection.executemany(statement, rows)
                self._connection.execute("COMMIT")
            except sqlite3.Error:
                if self._connection.in_transaction:  # SQLite has already rolled back if the disk is full
                    self._connection.execute("ROLLBACK")
                raise


@contextmanager
def _using(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        instead = "free space on this disk; a damaged file may be deleted and is downloaded again"
        raise StorageError(f"cannot be used: {error}", where=str(path), instead=instead) from error


@lru_cache(4)
def _read_only(folder: Path, _inode: int) -> Uploads:
    return Uploads(folder, read_only=True)


def is_held(path: Path) -> bool:
    """Return True if a missing local file is in a store, according to this machine's records."""
    if (found := stands_for(path)) is None:
        return False
    folder = found[0]
    if folder.parent.name != SPOOLS:
        return True  # this is a read-only copy, whose ledger names the stored objects
    try:
        inode = (folder / FILE_NAME).stat().st_ino
    except OSError:
        return False
    return _read_only(folder, inode).has(path.relative_to(folder).as_posix())


def is_stored(path: Path, byte_count: int) -> bool:
    """Return True if a dataset's file exists with a given size [bytes], locally or in the store."""
    return has_size(path, byte_count) or (not path.exists() and is_held(path))


def has_files(folder: Path, attempt: Attempt) -> bool:
    """Return True if all files of an attempt exist with their recorded sizes."""
    return all(is_stored(folder / path, byte_count) for path, byte_count in attempt.files.items())
