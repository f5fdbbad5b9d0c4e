"""Ledger: SQLite record of every attempt, episode state, fault, worker time span and run."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

from nimbus.datagen.store.ledger.attempt import Attempt
from nimbus.datagen.store.ledger.records import DrawnValues, EpisodeState, EpisodeStatus, Fault, Run, TimeSpan
from nimbus.datagen.store.ledger.sqlite import open_to_read, open_to_write, reading, writing
from nimbus.datagen.store.ledger.tables import ATTEMPTS, DRAWS, EPISODES, FAULTS, RUNS, SPANS, TABLES, Table

FILE_NAME = "ledger.sqlite"

Row = Attempt | EpisodeState | Fault | TimeSpan | Run
T = TypeVar("T")
_TABLE_OF = {table.row: table for table in TABLES}
_OWN = "(:task = '' OR task = :task)"
"""SQL condition for rows of the ledger's task."""
_OWN_EPISODES = """task IN (
    WITH RECURSIVE own(name) AS (
        SELECT CASE WHEN :task = '' THEN (SELECT MIN(task) FROM episodes) ELSE :task END
        UNION ALL
        SELECT (SELECT MIN(task) FROM episodes WHERE task > own.name) FROM own WHERE :task = '' AND own.name IS NOT NULL
    ) SELECT name FROM own)"""
"""Same condition for the table of episodes, whose key begins with the task, so that a search for an index reads few
rows."""
_FINISHED = f"""
SELECT variant, success FROM attempts WHERE idx = :idx AND {_OWN} AND (path != '' OR (final AND NOT success))
UNION ALL SELECT variant, 1 FROM episodes WHERE idx = :idx AND {_OWN_EPISODES} AND state = 'QUARANTINED'
"""

_TOUCHED = f"""
SELECT idx FROM attempts WHERE idx < :episodes AND {_OWN} AND (path != '' OR (final AND NOT success))
UNION SELECT idx FROM episodes WHERE idx < :episodes AND {_OWN_EPISODES} AND state = 'QUARANTINED'
"""
_KNOWN = f"""
SELECT idx FROM attempts WHERE idx BETWEEN :begin AND :last AND {_OWN}
UNION SELECT idx FROM episodes WHERE idx BETWEEN :begin AND :last AND {_OWN_EPISODES}
"""
_ORDER = "task, seed, idx, variant, attempt"
_DRAWN = """COALESCE((
SELECT draws.drawn FROM draws WHERE draws.episode_id = attempts.episode_id AND draws.attempt = attempts.attempt
), drawn)"""
"""SQL for the drawn values of an attempt; ledgers of earlier versions have them in the attempt's row."""
_WITH_DRAWN, _WITHOUT_DRAWN = ATTEMPTS.select_with(drawn=_DRAWN), ATTEMPTS.select_with(drawn="'{}'")
_SPREAD = 2654435761
"""Factor of a hash that scatters indices (Knuth, 1973), because one part of a run has every n-th episode."""
_PAGE = 500
"""Number of rows fetched at a time."""
_NO_INDEX = 1 << 62
"""Value above all indices and variants."""
_STORED_COUNT = f"""
SELECT COUNT(*) FROM (
SELECT DISTINCT idx, variant FROM attempts WHERE path != '' AND idx < :episodes AND variant < :variants AND {_OWN})
"""


class Ledger:
    """Record of a dataset. One process writes, one thread at a time; any process may read.

    Args:
        folder: The dataset's folder.
        read_only: Open for reading, even during a run and on a read-only disk.
        task: In a dataset of several tasks, the task whose episodes an index refers to.
        check_pages: When reading, check every page once (`open_to_read`). False where a process of the same run writes.

    Raises:
        InputError: There is no ledger, or the file is damaged.
    """

    def __init__(self, folder: Path, *, read_only: bool = False, task: str = "", check_pages: bool = True) -> None:
        self.path, self.task = folder / FILE_NAME, task
        if read_only:
            self._connection = open_to_read(self.path, check_pages=check_pages)
        else:
            self._connection = open_to_write(self.path)
        self._lock = threading.RLock()
        self._in_batch = False
        self._deferred: list[Row] = []
        self._deferred_states: dict[tuple[str, int, int], EpisodeState] = {}
        self._open: dict[tuple[str, int, int], EpisodeState] = {}
        """Cached states of unsettled episodes, as written by this process."""
        self._last = (_NO_INDEX, 0) if read_only else (self._last_index(), _NO_INDEX)
        """Largest index and variant with a row; larger ones need no lookup."""

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Run one transaction: everything written inside, and all deferred rows, become durable together.

        A nested batch joins the outer one.

        Raises:
            StorageError: The disk is full; nothing is written, and deferred rows wait for the next batch.
        """
        with self._lock:
            if self._in_batch:
                yield
                return
            self._in_batch = True
            # Copies are written: rows deferred inside the block wait for the next batch, and a failed batch loses none.
            rows, states = list(self._deferred), dict(self._deferred_states)
            self._deferred_states = {}
            try:
                with writing(self.path):
                    # IMMEDIATE takes the write lock at once, so that the transaction cannot fail to get it half-way.
                    self._connection.execute("BEGIN IMMEDIATE")
                    self._insert([*rows, *states.values()])
                yield
                with writing(self.path):
                    self._connection.execute("COMMIT")
                del self._deferred[: len(rows)]
            except BaseException:
                self._deferred_states = states | self._deferred_states
                # The cache may hold states of the failed transaction; the next lookup reads the file again.
                self._open = dict(self._deferred_states)
                raise
            finally:
                self._in_batch = False
                if self._connection.in_transaction:
                    with suppress(sqlite3.Error):  # the error that led here propagates
                        self._connection.execute("ROLLBACK")

    def record(self, *rows: Row) -> None:
        """Add rows of any table, durable at the end of the batch; rows with an existing key are replaced.

        Raises:
            StorageError: The disk is full.
        """
        with self.batch(), writing(self.path):
            self._insert(rows)
            self._remember(rows)

    def defer(self, *rows: Row) -> None:
        """Queue rows that the next batch writes before its own rows; :meth:`episode` returns them at once."""
        with self._lock:
            for row in rows:
                if isinstance(row, EpisodeState):
                    self._deferred_states[row.task, row.idx, row.variant] = row
                else:
                    self._deferred.append(row)
            self._remember(rows)

    def flush(self) -> None:
        """Write deferred rows.

        Raises:
            StorageError: The disk is full.
        """
        with self._lock:
            if self._deferred or self._deferred_states:
                with self.batch():
                    pass

    def forget(self, attempts: Iterable[Attempt]) -> None:
        """Remove attempts, so that their episodes are pending and are made again.

        Raises:
            StorageError: The disk is full.
        """
        with self.batch(), writing(self.path):
            for attempt in attempts:
                key = (attempt.episode_id, attempt.attempt)
                self._connection.execute("DELETE FROM attempts WHERE episode_id = ? AND attempt = ?", key)
                self._connection.execute("DELETE FROM draws WHERE episode_id = ? AND attempt = ?", key)
                place = (attempt.task if self.task else "", attempt.idx, attempt.variant)
                self._open.pop(place, None)
                self._connection.execute("DELETE FROM episodes WHERE task = ? AND idx = ? AND variant = ?", place)

    def start_run(
        self,
        *,
        mode: str,
        cores: int = 0,
        workers: str = "",
        settings: Mapping[str, Any] | None = None,
        started: float = 0.0,
    ) -> Run:
        """Record a run that begins now, or began at ``started`` [s since 1970].

        Raises:
            StorageError: The disk is full.
        """
        last = max((run.id for run in self.runs()), default=0)
        values = dict(settings or {})
        begun = started or time.time()
        run = Run(id=last + 1, started=begun, mode=mode, cores=cores, workers=workers, settings=values)
        self.record(run)
        return run

    def end_run(
        self,
        run: Run,
        *,
        state: str,
        wall_seconds: float,
        startup_seconds: float = 0.0,
        busy: Mapping[str, float] | None = None,
    ) -> None:
        """Record the end of a run.

        Args:
            run: The run, as it was started.
            state: Its result.
            wall_seconds: Its duration [s].
            startup_seconds: Time until its first order [s].
            busy: Time during which each GPU, by UUID, and the disk were busy [s].

        Raises:
            StorageError: The disk is full.
        """
        ended = replace(
            run,
            ended=time.time(),
            state=state,
            wall_seconds=wall_seconds,
            startup_seconds=startup_seconds,
            busy=dict(busy or {}),
        )
        self.record(ended)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Open a consistent snapshot for reading several tables while a run writes."""
        with self._lock:
            with reading(self.path):
                self._connection.execute("BEGIN")
            try:
                yield
            finally:
                self._connection.execute("ROLLBACK")

    def attempts(self, index: int | None = None) -> list[Attempt]:
        """Return all attempts, or those at one episode, by task, index, variant and attempt."""
        which, values = ("", {}) if index is None else (f"WHERE idx = :idx AND {_OWN}", self._of(idx=index))
        return list(self._walk(ATTEMPTS, f"{_WITH_DRAWN} {which} ORDER BY {_ORDER}", values))

    def walk_attempts(
        self,
        *,
        only_stored: bool = False,
        with_drawn: bool = False,
        order: Literal["run", "place", "id"] = "run",
    ) -> Iterator[Attempt]:
        """Yield every attempt, by task, index, variant and attempt, in constant memory.

        Args:
            only_stored: Yield only attempts that have a file.
            with_drawn: Also read the drawn values, which make up a third of a row.
            order: ``place`` is the order of :meth:`walk_episodes`, by index and variant only; ``id`` is the order of
                episode ids.
        """
        which = "WHERE path != ''" if only_stored else ""
        place = "task, idx, variant, attempt" if self.has_tasks else "idx, variant, attempt"
        columns = {"run": _ORDER, "place": place, "id": "episode_id, attempt"}[order]
        return self._walk(ATTEMPTS, f"{_WITH_DRAWN if with_drawn else _WITHOUT_DRAWN} {which} ORDER BY {columns}")

    def row_count(self) -> int:
        """Count the attempts."""
        with self._lock, reading(self.path):
            return self._connection.execute("SELECT COUNT(*) FROM attempts").fetchone()[0]

    @property
    def has_tasks(self) -> bool:
        """True for a dataset of several tasks."""
        with self._lock, reading(self.path):
            return self._connection.execute("SELECT 1 FROM episodes WHERE task != '' LIMIT 1").fetchone() is not None

    def sample_attempts(self, most: int) -> Iterator[Attempt]:
        """Yield all attempts, with their drawn values, of a limited number of episodes spread over the ledger.

        Args:
            most: Largest number of episodes.
        """
        with self._lock, reading(self.path):
            (last,) = self._connection.execute("SELECT COALESCE(MAX(idx), 0) FROM attempts").fetchone()
        # Indices are sampled by a hash: every n-th index could all belong to the same part of a run in parts.
        share = -(-(last + 1) // most)
        which = f"WHERE ((idx * {_SPREAD}) & 4294967295) % {share} = 0" if share > 1 else ""
        return self._walk(ATTEMPTS, f"{_WITH_DRAWN} {which} ORDER BY {_ORDER}")

    def walk_episodes(self) -> Iterator[EpisodeState]:
        """Yield the state of every episode that has a row, by task, index and variant, in constant memory."""
        return self._walk(EPISODES, f"{EPISODES.select} ORDER BY task, idx, variant")

    def walk_spans(self, run: int) -> Iterator[TimeSpan]:
        """Yield the time spans of a run, in constant memory."""
        return self._walk(SPANS, f"{SPANS.select} WHERE run = :run ORDER BY rowid", {"run": run})

    def attempts_of(self, episode_ids: Sequence[str]) -> list[Attempt]:
        """Return those attempts at the given episodes that have a file, without their drawn values."""
        marks = ", ".join("?" for _ in episode_ids)
        statement = f"{_WITHOUT_DRAWN} WHERE episode_id IN ({marks}) AND (path != '' OR failure != 'null')"
        with self._lock, reading(self.path):
            rows = self._connection.execute(statement, list(episode_ids)).fetchall()
            return [ATTEMPTS.parse(row) for row in rows]

    def stored_paths(self, episode_ids: Sequence[str]) -> set[str]:
        """Return the paths of all stored files of the given episodes."""
        return {path for row in self.attempts_of(episode_ids) if row.path for path in row.files}

    def stored(self, index: int | None = None) -> list[Attempt]:
        """Return the attempts that have a file, of one episode or of all, by task, index and variant."""
        if index is None:
            return list(self.walk_attempts(only_stored=True))
        return [attempt for attempt in self.attempts(index) if attempt.path]

    def stored_count(self, *, episodes: int, variants: int) -> int:
        """Count stored episodes among the first ``episodes`` indices and ``variants`` variants."""
        with self._lock, reading(self.path):
            values = self._of(episodes=episodes, variants=variants)
            return self._connection.execute(_STORED_COUNT, values).fetchone()[0]

    def touched(self, *, episodes: int) -> list[int]:
        """Return the first ``episodes`` indices with a settled variant, in order."""
        with self._lock, reading(self.path):
            found = self._connection.execute(f"{_TOUCHED} ORDER BY idx", self._of(episodes=episodes))
            return [row[0] for row in found]

    def known(self, begin: int, end: int) -> set[int]:
        """Return the indices in ``range(begin, end)`` that have an attempt or a state."""
        bounds = self._of(begin=begin, last=end - 1)
        with self._lock, reading(self.path):
            return {row[0] for row in self._connection.execute(_KNOWN, bounds)} | {
                index for task, index, _ in self._deferred_states if task == self.task and begin <= index < end
            }

    def finished(self, index: int, variants: tuple[int, ...] = (0,)) -> tuple[int, ...]:
        """Return the variants of an episode that need no more work: stored, quarantined, or rejected."""
        with self._lock, reading(self.path):
            rows = self._connection.execute(_FINISHED, self._of(idx=index)).fetchall()
        if any(not success for _, success in rows):
            return variants
        return tuple(variant for variant in variants if variant in {row[0] for row in rows})

    def episode(self, index: int, variant: int = 0) -> EpisodeState | None:
        """Return the state of an episode; None when it has no row."""
        with self._lock:
            key = (self.task, index, variant)
            if known := self._deferred_states.get(key) or self._open.get(key):
                return known
            # Most lookups are for new episodes, which cannot have a row yet; the comparison saves a query per lease.
            if (index, variant) > self._last:
                return None
            which = f"WHERE idx = :idx AND variant = :variant AND {_OWN_EPISODES}"
            return next(iter(self._read(EPISODES, which, self._of(idx=index, variant=variant))), None)

    def state_of(self, attempt: Attempt, state: EpisodeStatus, **values: Any) -> EpisodeState:
        """Build the state row of an attempt's episode."""
        task = attempt.task if self.task else ""
        return EpisodeState(
            task=task, idx=attempt.idx, variant=attempt.variant, state=state, episode_id=attempt.episode_id, **values
        )

    def episodes(self, *states: EpisodeStatus) -> list[EpisodeState]:
        """Return all episode states, or those of some statuses, by task, index and variant."""
        values = {f"state_{number}": state for number, state in enumerate(states)}
        which = f"WHERE state IN ({', '.join(f':{name}' for name in values)})" if states else ""
        return self._read(EPISODES, f"{which} ORDER BY task, idx, variant", values)

    def faults(self) -> list[Fault]:
        """Return every fault, in order of time."""
        return self._read(FAULTS, "ORDER BY time")

    def spans(self, run: int | None = None) -> list[TimeSpan]:
        """Return the time spans of workers in one run, or in all, by run, worker and time."""
        which, values = ("", {}) if run is None else ("WHERE run = :run", {"run": run})
        return self._read(SPANS, f"{which} ORDER BY run, worker, begin", values)

    def runs(self) -> list[Run]:
        """Return every run, in order."""
        return self._read(RUNS, "ORDER BY id")

    def close(self) -> None:
        """Close the ledger, which then is a single file on disk. Deferred rows that were not flushed are lost."""
        self._connection.close()

    def _remember(self, rows: Iterable[Row]) -> None:
        for row in rows:
            if isinstance(row, EpisodeState):
                self._last = max(self._last, (row.idx, row.variant))
                place = (row.task, row.idx, row.variant)
                if row.state in (EpisodeStatus.PENDING, EpisodeStatus.LEASED, EpisodeStatus.INTENT):
                    self._open[place] = row
                else:
                    self._open.pop(place, None)

    def _last_index(self) -> int:
        with reading(self.path):
            return self._connection.execute("SELECT COALESCE(MAX(idx), -1) FROM episodes").fetchone()[0]

    def _of(self, **values: int) -> dict[str, str | int]:
        return {"task": self.task, **values}

    def _read(self, table: Table[T], rest: str, values: Mapping[str, str | int] | None = None) -> list[T]:
        return list(self._walk(table, f"{table.select} {rest}", values))

    def _walk(self, table: Table[T], statement: str, values: Mapping[str, str | int] | None = None) -> Iterator[T]:
        """Yield rows. Repeated rows are reported as a damaged file."""
        before: tuple[Any, ...] | None = None
        with self._lock, reading(self.path):
            cursor = self._connection.execute(statement, values or {})
        while True:
            with self._lock, reading(self.path):
                # The lock is held for one page at a time, so that a long walk does not block the threads of a run.
                rows = [table.parse(cells) for cells in cursor.fetchmany(_PAGE)]
                for row in rows:
                    if table.key and (key := table.key_of(row)) == before:
                        raise ValueError(f"two {table.name} are the same: {key}")
                    before = table.key_of(row)
            if not rows:
                return
            yield from rows

    def _insert(self, rows: Iterable[Row]) -> None:
        for kind, same in groupby(rows, type):
            if kind is Attempt:
                self._insert_attempts(cast("list[Attempt]", list(same)))
                continue
            table = _TABLE_OF[kind]
            self._connection.executemany(table.insert, map(table.values, same))

    def _insert_attempts(self, attempts: list[Attempt]) -> None:
        """Add attempts, and their drawn values in a separate table."""
        bare = (replace(one, drawn={}) if one.drawn else one for one in attempts)
        self._connection.executemany(ATTEMPTS.insert, map(ATTEMPTS.values, bare))
        for one in attempts:
            key = (one.episode_id, one.attempt)
            if one.drawn:
                row = DrawnValues(episode_id=one.episode_id, attempt=one.attempt, drawn=one.drawn)
                self._connection.execute(DRAWS.insert, DRAWS.values(row))
            else:
                self._connection.execute("DELETE FROM draws WHERE episode_id = ? AND attempt = ?", key)
