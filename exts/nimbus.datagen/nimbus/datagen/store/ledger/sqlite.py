"""Opening of the ledger's SQLite file, and its one-line errors."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nimbus.datagen.errors import InputError, StorageError
from nimbus.datagen.files.bounded import check_own_file, check_regular
from nimbus.datagen.files.own_files import check_own
from nimbus.datagen.store.ledger.tables import TABLES, Table

_LONGEST = 64 << 20
"""Longest value of a row [bytes]."""
_JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
"""Magic number at the end of a journal that names a super-journal."""
_CONSTANT = re.compile(r"|NULL|[-+]?[0-9.]{1,20}|'[^']*'", re.IGNORECASE)
"""Default value that is no expression."""
_EXPRESSION = -2
"""Column number that SQLite reports for an index on an expression."""
_STEPS_PER_BYTE = 100
"""Limit of SQLite's steps per byte in the checks of a file: several times the number that a valid file needs."""
_LEAST_STEPS = 10_000_000
_STEPS_PER_CALL = 100_000


def open_to_write(path: Path) -> sqlite3.Connection:
    """Open for the single writing process, and check every page once.

    Raises:
        InputError: The file is a link, damaged, or not a ledger.
        StorageError: The disk is full.
    """
    for suffix in ("", "-wal", "-shm", "-journal"):  # SQLite would follow a link, and wait for a pipe
        file = path.with_name(path.name + suffix)
        check_own(file)
        if file.exists():
            check_regular(file)
    _check_journal(path.with_name(path.name + "-journal"))
    with writing(path):
        # Several threads of a run use the connection, one at a time.
        connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
    try:
        # SQLite may write even to read the schema, for example to recover its log
        with reading(path), writing(path), limited_steps(connection, path):
            _check_schema(connection)
        with writing(path):
            # WAL lets readers (reports, the page of a run) see a consistent state while the run writes.
            connection.execute("PRAGMA journal_mode = WAL")
            # FULL is used instead of NORMAL, which syncs only at checkpoints in WAL mode, so a power failure could lose
            # a commit.
            connection.execute("PRAGMA synchronous = FULL")
        with reading(path), limited_steps(connection, path):
            _check_pages(connection)
        with writing(path):
            _create(connection)
        with reading(path):
            _check_columns(connection)
    except InputError:
        connection.close()
        raise
    return connection


def _check_journal(journal: Path) -> None:
    """Refuse a rollback journal that names a super-journal, because SQLite deletes the named file wherever it is.

    A ledger attaches no other database, so its own journals never name one. Format:
    https://sqlite.org/fileformat2.html

    Raises:
        InputError: The journal names a super-journal.
    """
    if not journal.exists():
        return
    with journal.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - len(_JOURNAL_MAGIC)))
        ends = file.read()
    if ends == _JOURNAL_MAGIC:
        what = "the journal of the ledger names another file, which SQLite would delete"
        raise InputError(what, where=str(journal), instead="delete this journal, or restore the dataset from a copy")


def open_to_read(path: Path, *, check_pages: bool = True) -> sqlite3.Connection:
    """Open for reading, even during a run and on a read-only disk.

    Args:
        path: The ledger.
        check_pages: Check every page once, which takes about a second per gigabyte. In a damaged file, a page that is
            named many times would yield rows endlessly, before the first one or while they are counted.

    Raises:
        InputError: There is no ledger, or the file is not a ledger, or it is damaged.
    """
    if not path.exists():
        raise InputError("there is no ledger here", where=str(path.parent), instead="give the folder of a dataset")
    check_regular(path)
    for suffix in ("-wal", "-shm"):  # SQLite would follow a link, and read the rows of another ledger
        check_own_file(path.with_name(path.name + suffix))
    # A reader in WAL mode creates files, which fails on a read-only disk. Without a writer, the file is opened as
    # immutable.
    live = path.with_name(path.name + "-wal").exists()
    error: sqlite3.Error | None = None
    for options in ("mode=ro", "mode=ro&immutable=1") if live else ("mode=ro&immutable=1",):
        address = f"{path.absolute().as_uri()}?{options}"
        try:
            connection = sqlite3.connect(address, uri=True, check_same_thread=False, isolation_level=None)
        except sqlite3.Error as failure:
            error = failure
            continue
        try:
            with limited_steps(connection, path):
                _check_schema(connection)
                if check_pages:
                    _check_pages(connection)
            _complete(connection)
            _check_columns(connection)
        except ValueError as failure:  # opening it as immutable would only ignore the write-ahead log
            connection.close()
            raise _damaged(path, failure) from None
        except sqlite3.Error as failure:
            connection.close()
            error = failure
        else:
            return connection
    assert error
    raise _damaged(path, error)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Convert errors of damaged content to one line."""
    try:
        yield
    except (sqlite3.Error, ValueError) as error:
        raise _damaged(path, error) from error


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Convert errors of a full disk or a damaged file to one line."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise StorageError(f"cannot write: {error}", where=str(path), instead="free space on this disk") from error
    except sqlite3.DatabaseError as error:
        raise _damaged(path, error) from error


def _create(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        for table in TABLES:
            for statement in table.create.split(";"):
                connection.execute(statement)
            for name, value in _lacking(connection, table).items():
                connection.execute(f"ALTER TABLE {table.name} ADD COLUMN {name} TEXT NOT NULL DEFAULT {value}")
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _complete(connection: sqlite3.Connection) -> None:
    """Add missing columns of an older ledger as temporary views, without writing to its file."""
    for table in TABLES:
        if table.is_later and not _columns(connection, table):
            connection.execute(table.create.split(";")[0].replace("TABLE IF NOT EXISTS", "TEMP TABLE", 1))
        if lacking := _lacking(connection, table):
            columns = ", ".join(f"{value} AS {name}" for name, value in lacking.items())
            connection.execute(f"CREATE TEMP VIEW {table.name} AS SELECT *, {columns} FROM main.{table.name}")


def _lacking(connection: sqlite3.Connection, table: Table[Any]) -> dict[str, str]:
    there = _columns(connection, table)
    return {name: value for name, value in table.later.items() if there and name not in there}


def _columns(connection: sqlite3.Connection, table: Table[Any]) -> set[str]:
    return {row[1] for row in connection.execute(f"PRAGMA main.table_info({table.name})")}


def _check_schema(connection: sqlite3.Connection) -> None:
    """Refuse a schema that could execute code or compute rows: a ledger has plain tables only.

    Raises:
        ValueError: The schema has a view, a trigger, a virtual table, or a computed column, default or index.
    """
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
    # A dataset may come from an untrusted source: reading it must not run functions or allocate without limit.
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    # A constraint may call a function on long texts, and steps are not counted inside of it.
    connection.execute("PRAGMA ignore_check_constraints = ON")
    for kind, name, sql in connection.execute("SELECT type, name, COALESCE(sql, '') FROM sqlite_master"):
        if kind not in ("table", "index") or (kind == "table" and not sql.upper().startswith("CREATE TABLE")):
            raise ValueError(f"it holds the {kind} '{name}', where plain tables are expected")
        # Hidden columns are computed, and so are indices on expressions.
        pragma, place = ("table_xinfo", 6) if kind == "table" else ("index_xinfo", 1)
        for column in connection.execute(f"SELECT * FROM pragma_{pragma}(?)", (name,)):
            if column[place] not in (0, None) if kind == "table" else column[place] == _EXPRESSION:
                raise ValueError(f"{kind} '{name}' holds a computed column")
            if kind == "table" and not _CONSTANT.fullmatch(column[4] or ""):
                raise ValueError(f"table '{name}' holds a computed default")
        if kind == "table" and any(row[4] for row in connection.execute("SELECT * FROM pragma_index_list(?)", (name,))):
            raise ValueError(f"table '{name}' has an index on a condition")


@contextmanager
def limited_steps(connection: sqlite3.Connection, path: Path) -> Iterator[None]:
    """Interrupt statements that take more steps than a file of this size can need.

    The table of the schema is read before its pages can be checked, and may be damaged like any other.
    """
    files = (path, path.with_name(f"{path.name}-wal"))
    size = sum(file.stat().st_size for file in files if file.exists())
    calls = iter(range((_LEAST_STEPS + _STEPS_PER_BYTE * size) // _STEPS_PER_CALL))
    connection.set_progress_handler(lambda: int(next(calls, None) is None), _STEPS_PER_CALL)
    try:
        yield
    finally:
        connection.set_progress_handler(None, 0)


def _check_pages(connection: sqlite3.Connection) -> None:
    (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise sqlite3.DatabaseError(found.splitlines()[-1])  # the first line names the database


def _check_columns(connection: sqlite3.Connection) -> None:
    for table in TABLES:
        connection.execute(f"{table.select} LIMIT 1").fetchone()


def _damaged(path: Path, error: Exception) -> InputError:
    what = f"not a ledger: {error}".split("\n")[0]
    return InputError(what, where=str(path), instead="restore this file from a copy")
