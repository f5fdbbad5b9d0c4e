"""The ledger: one SQLite row an attempt, stored or failed."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from nimbus.datagen.errors import InputError, StorageError
from nimbus.datagen.store.json_text import from_plain, parse_json

FILE_NAME = "ledger.sqlite"

_TABLE = """
CREATE TABLE IF NOT EXISTS attempts (
    episode_id TEXT NOT NULL,
    task TEXT NOT NULL,
    seed INTEGER NOT NULL,
    idx INTEGER NOT NULL,
    variant INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    final INTEGER NOT NULL,
    success INTEGER NOT NULL,
    phase TEXT NOT NULL,
    reason TEXT NOT NULL,
    detail TEXT NOT NULL,
    step_count INTEGER NOT NULL,
    duration REAL NOT NULL,
    byte_count INTEGER NOT NULL,
    path TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    times TEXT NOT NULL,
    objects TEXT NOT NULL,
    started REAL NOT NULL,
    ended REAL NOT NULL,
    PRIMARY KEY (episode_id, attempt)
) WITHOUT ROWID
"""
_PATH = re.compile(r"episodes/[^/\\\0]+\.hdf5")
_INDEX = "CREATE INDEX IF NOT EXISTS attempts_by_idx ON attempts (idx)"


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One attempt at one episode, as it stands in the ledger."""

    episode_id: str
    task: str
    seed: int
    idx: int
    variant: int
    attempt: int
    final: bool
    """No further attempt follows."""
    success: bool
    phase: str = ""
    reason: str = "none"
    detail: str = ""
    step_count: int = 0
    duration: float = 0.0
    """[s] of the motion"""
    byte_count: int = 0
    path: str = ""
    """Relative to the dataset; empty when nothing is stored."""
    sha256: str = ""
    """Content hash at level D1; empty when nothing is stored."""
    times: dict[str, float] = field(default_factory=dict)
    """CPU seconds by stage."""
    objects: tuple[dict[str, str], ...] = ()
    """By object: name, kind, variant, class, rest pose."""
    started: float = 0.0
    """[s since 1970] when the writer took it up"""
    ended: float = 0.0

    def is_in(self, folder: Path) -> bool:
        """Whether its file is in a dataset's folder, with the size that was written."""
        path = folder / self.path
        return path.is_file() and path.stat().st_size == self.byte_count


_COLUMNS = tuple(item.name for item in fields(Attempt))
_FIRST = f"SELECT {', '.join(_COLUMNS)} FROM attempts LIMIT 1"


class Ledger:
    """All attempts of a dataset. One process writes; any may read.

    Args:
        folder: The dataset's folder.
        read_only: Open for reading; works while a run writes, and on a disk that is mounted read-only.

    Raises:
        InputError: There is no ledger to read, or the file is not one.
    """

    def __init__(self, folder: Path, *, read_only: bool = False) -> None:
        self.path = folder / FILE_NAME
        self._connection = _connect_read_only(self.path) if read_only else _connect(self.path)

    def record(self, attempt: Attempt) -> None:
        """Add an attempt, durable when this returns; the same attempt made again replaces its row.

        Raises:
            StorageError: The disk is full.
        """
        values = {name: getattr(attempt, name) for name in _COLUMNS}
        values |= {"times": json.dumps(attempt.times), "objects": json.dumps(attempt.objects)}
        marks = ", ".join(f":{name}" for name in _COLUMNS)
        with _storage_errors(self.path), self._connection:
            self._connection.execute(
                f"INSERT OR REPLACE INTO attempts ({', '.join(_COLUMNS)}) VALUES ({marks})", values
            )

    def attempts(self, index: int | None = None) -> list[Attempt]:
        """Every attempt, at one episode or at all, by index, variant and attempt."""
        which, values = ("", ()) if index is None else ("WHERE idx = ?", (index,))
        query = f"SELECT {', '.join(_COLUMNS)} FROM attempts {which} ORDER BY seed, idx, variant, attempt"
        with _reading(self.path):
            return [_attempt(row) for row in self._connection.execute(query, values)]

    def stored(self, index: int | None = None) -> list[Attempt]:
        """The attempts that have a file, of one episode or of all, by index and variant."""
        return [attempt for attempt in self.attempts(index) if attempt.path]

    def finished(self, index: int, variants: tuple[int, ...] = (0,)) -> tuple[int, ...]:
        """Which of the variants of an episode need no more work: stored, or their plan failed for good."""
        query = "SELECT variant, success FROM attempts WHERE idx = ? AND (path != '' OR (final AND NOT success))"
        with _reading(self.path):
            rows = self._connection.execute(query, (index,)).fetchall()
        if any(not success for _, success in rows):
            return variants
        return tuple(variant for variant in variants if variant in {row[0] for row in rows})

    def forget(self, attempts: Iterable[Attempt]) -> None:
        """Take out attempts, so that they are made again.

        Raises:
            StorageError: The disk is full.
        """
        keys = [(attempt.episode_id, attempt.attempt) for attempt in attempts]
        with _storage_errors(self.path), self._connection:
            self._connection.executemany("DELETE FROM attempts WHERE episode_id = ? AND attempt = ?", keys)

    def close(self) -> None:
        """Close; a writer's last close leaves one plain file."""
        self._connection.close()


def _attempt(row: tuple[Any, ...]) -> Attempt:
    """The attempt of a row; a ``ValueError`` when it is none."""
    values: dict[str, Any] = dict(zip(_COLUMNS, row, strict=True))
    attempt = from_plain(Attempt, values | {name: parse_json(values[name]) for name in ("times", "objects")})
    if attempt.path and not _PATH.fullmatch(attempt.path):
        raise ValueError(f"path '{attempt.path}' is none of an episode")
    return attempt


def _connect(path: Path) -> sqlite3.Connection:
    # The I/O of a run may move to another thread between attempts; the writer never uses two at once.
    connection = sqlite3.connect(path, check_same_thread=False)
    try:
        with _storage_errors(path):
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute(_TABLE)
        with _reading(path):
            connection.execute(_FIRST).fetchone()
        with _storage_errors(path):
            connection.execute(_INDEX)
            connection.commit()
    except InputError:
        connection.close()
        raise
    return connection


def _connect_read_only(path: Path) -> sqlite3.Connection:
    if not path.is_file():
        raise InputError("there is no ledger here", where=str(path.parent), instead="give the folder of a dataset")
    # A WAL reader leaves files behind and cannot read from a read-only disk: without a writer, read the file as it is.
    live = path.with_name(path.name + "-wal").exists()
    error: sqlite3.Error | None = None
    for options in ("mode=ro", "mode=ro&immutable=1") if live else ("mode=ro&immutable=1",):
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?{options}", uri=True)
        try:
            connection.execute(_FIRST).fetchone()
        except sqlite3.Error as failure:
            connection.close()
            error = failure
        else:
            return connection
    assert error
    raise _damaged(path, error)


def _damaged(path: Path, error: Exception) -> InputError:
    what = f"not a ledger: {error}".split("\n")[0]
    return InputError(what, where=str(path), instead="restore this file from a copy")


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, ValueError) as error:
        raise _damaged(path, error) from error


@contextmanager
def _storage_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        raise StorageError(f"cannot write: {error}", where=str(path), instead="make room on this disk") from error
    except sqlite3.DatabaseError as error:
        raise _damaged(path, error) from error
