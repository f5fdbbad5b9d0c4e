"""Dataset opened for writing: its folder, its ledger, and the lock of its single writer."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from nimbus.datagen.episode.credits import AssetCredit
from nimbus.datagen.episode.meaning import TaskMeaning
from nimbus.datagen.errors import InputError, StorageError, StoreAwayError
from nimbus.datagen.files.atomic import sync_folder
from nimbus.datagen.files.folder_lock import FolderLock
from nimbus.datagen.files.own_files import make_subfolder
from nimbus.datagen.store.commit import ORPHANS, Committer, StagedEpisode
from nimbus.datagen.store.dataset_origin import check_folder as check_folder
from nimbus.datagen.store.dataset_origin import refuse_foreign, refuse_other_inputs, refuse_other_task
from nimbus.datagen.store.episode_file.schema import FIELD_SCHEMA
from nimbus.datagen.store.failures import clear_failures
from nimbus.datagen.store.folder import open_folder, quarantine_file
from nimbus.datagen.store.info import (
    INFO_NAME,
    RESTORE,
    DatasetInfo,
    add_task,
    infer_dataset_info_from_file,
    info_text,
    merge,
    read_info,
)
from nimbus.datagen.store.ledger.attempt import Attempt
from nimbus.datagen.store.ledger.ledger import Ledger
from nimbus.datagen.store.ledger.records import EpisodeState, EpisodeStatus, Fault, TimeSpan
from nimbus.datagen.store.publish import disk, replace_text
from nimbus.datagen.store.recovery import RecoveryReport, recover
from nimbus.datagen.store.remote.uploads import has_files, is_stored

_log = logging.getLogger(__name__)
_INFO_PERIOD = 5.0
"""Interval between two writes of ``dataset.json``, which follows the ledger [s]."""
_LATE = 10.0
"""Largest difference in end time between two attempts that may have been committed in reverse order [s]."""


@dataclass(frozen=True, slots=True)
class _StoredRow:
    """Part of a stored attempt that is kept while a dataset is opened; a million whole attempts take 3 GB."""

    path: str
    """Path of the HDF5 file in the dataset."""
    videos: tuple[str, ...]
    """Paths of the other files."""
    ended: float
    """End of the attempt [s since 1970]."""
    step_count: int
    byte_count: int
    """Total size of the files [bytes]."""

    @classmethod
    def of(cls, attempt: Attempt) -> Self:
        """Take this part of an attempt."""
        videos = tuple(video.path for video in attempt.videos)
        return cls(attempt.path, videos, attempt.ended, attempt.step_count, attempt.stored_bytes)

    @property
    def paths(self) -> tuple[str, ...]:
        """Paths of all files."""
        return (*self.videos, self.path)


class Dataset:
    """Dataset that this process writes; see :meth:`create_or_open`.

    Attributes:
        orphans: New paths of files without a row in the ledger.
        outdated: Files of stored episodes that were missing or changed when the folder was opened; these episodes were
            removed from the ledger and are made again.
        recovered: Result of the recovery of the last run's unfinished commits.
        stale: Number of episodes refused because their lease was outdated.
    """

    def __init__(self, folder: Path, info: DatasetInfo, lock: FolderLock, *, task: str = "") -> None:
        self.folder = folder
        self.info = info
        self.episodes = folder / "episodes"
        self.stage = folder / "stage"
        self.outdated: tuple[Path, ...] = ()
        self.recovered = RecoveryReport()
        self.stale = 0
        self._lock: FolderLock | None = lock
        self._written = info
        self._written_at = -_INFO_PERIOD
        # The writer's I/O thread commits while the main thread leases and records, so they need a lock.
        self._turn = threading.RLock()
        self.ledger = Ledger(folder, task=task)
        self._publisher = Committer(folder, self.ledger)
        try:
            self._recover()
        except BaseException:
            self.ledger.close()
            raise

    @classmethod
    def create_or_open(
        cls,
        folder: Path | str,
        *,
        task: str,
        task_hash: str,
        seed: int,
        robot: str = "",
        inputs: Mapping[str, str] | None = None,
        collection: str = "",
        credits: Mapping[str, AssetCredit] | None = None,
        meaning: TaskMeaning | None = None,
    ) -> Dataset:
        """Create a dataset in a new or empty folder, or reopen one of the same origin.

        Args:
            folder: Its folder.
            task: Name of the task.
            task_hash: Content hash of the task.
            seed: Seed of the run.
            robot: Name of the robot.
            inputs: Further inputs that decide the content.
            collection: Name of the task folder that the task belongs to; the dataset then has several tasks.
            credits: Sources of imported objects that its episodes may show.
            meaning: Meaning of the task, for yields.

        Raises:
            InputError: The folder is a file, cannot be written, holds other files or a dataset of another origin, or is
                in use by another run.
            StorageError: The disk is full.
        """
        folder = Path(folder).absolute()
        # The lock is taken first, so that nothing can change between the checks below and the first write.
        lock = open_folder(folder)
        try:
            wanted = DatasetInfo(
                task=task,
                task_hash=task_hash,
                seed=seed,
                inputs=dict(inputs or {}),
                field_schema=FIELD_SCHEMA,
                robot=robot,
                credits=dict(credits or {}),
                meanings={task: meaning} if meaning else {},
            )
            if (folder / INFO_NAME).exists():
                info = read_info(folder)
                refuse_other_task(folder, info, task=task, task_hash=task_hash, seed=seed, collection=collection)
                if not collection or task in info.tasks:
                    refuse_other_inputs(folder, info, wanted)
            else:
                refuse_foreign(folder)
                info = replace(add_task(wanted, wanted), task=collection, task_hash="") if collection else wanted
            if collection and task not in info.tasks:
                info = add_task(info, wanted)
            if not (folder / INFO_NAME).exists() or task in info.tasks:
                replace_text(folder / INFO_NAME, info_text(info))
            return cls(folder, info, lock, task=task if collection else "")
        except BaseException:
            lock.release()
            raise

    @property
    def orphans(self) -> tuple[Path, ...]:
        """New paths of files without a row in the ledger."""
        return tuple(self._publisher.orphans)

    def lease(self, index: int, variants: Sequence[int] = (0,), *, lease: int | None = None, owner: str = "") -> int:
        """Record a lease on variants of an episode; it is durable with the next batch.

        Args:
            index: Index of the episode in the run.
            variants: Variants to be made.
            lease: Number of this lease; the next number when None.
            owner: Worker that holds it.

        Returns:
            Number of the lease; results of earlier leases are refused from now on.
        """
        with self._turn:
            known = {variant: self.ledger.episode(index, variant) for variant in variants}
            if (number := lease) is None:
                number = 1 + max((state.lease for state in known.values() if state), default=0)
            for variant, state in known.items():
                # The queue looks episodes up before leasing them, so a lease of a stored episode is a bug and not bad
                # input.
                if state is not None and state.state is EpisodeStatus.DONE:
                    raise ValueError(f"{state.episode_id} is stored already")
                values = {"state": EpisodeStatus.LEASED, "lease": number, "owner": owner}
                self.ledger.defer(EpisodeState(task=self.ledger.task, idx=index, variant=variant, **values))
            return number

    def lease_of(self, index: int, variant: int = 0) -> int:
        """Return the number of the lease under which an episode is being made; 0 for none."""
        known = self.ledger.episode(index, variant)
        return known.lease if known and known.state is EpisodeStatus.LEASED else 0

    def commit(self, staged: Sequence[StagedEpisode]) -> list[Attempt]:
        """Store episodes whose files are staged and synced, all of them or none.

        Returns:
            The stored attempts. The others, counted in ``stale``, are already stored or leased to another worker.

        Raises:
            StorageError: The disk is full; the staged files stay, and the call may be repeated.
        """
        with self._turn:
            taken = self._publisher.commit(staged)
            self.stale += len(staged) - len(taken)
            return self._count(taken)

    def enter(self, placed: Sequence[StagedEpisode]) -> list[Attempt]:
        """Store episodes whose files already have their final names, in this folder or in the store that it represents.

        Returns:
            The stored attempts; see :meth:`commit`.

        Raises:
            StorageError: The disk is full; none of them is stored, and the call may be repeated.
        """
        with self._turn:
            taken = self._publisher.enter([item for item in placed if has_files(self.folder, item.attempt)])
            self.stale += len(placed) - len(taken)
            return self._count(taken)

    def learn(self, learned: DatasetInfo) -> None:
        """Merge a description of stored episodes into that of the dataset; counts are not changed."""
        with self._turn:
            self.info = merge(self.info, learned)

    def record(self, attempts: Sequence[Attempt]) -> None:
        """Record failed attempts; an episode whose last attempt failed is rejected.

        Raises:
            StorageError: The disk is full; none of them is recorded.
        """
        if stored := [attempt.episode_id for attempt in attempts if attempt.path]:
            raise ValueError(f"{stored[0]} has a file: commit it")
        with self._turn, self.ledger.batch():
            self.ledger.record(*attempts)
            for attempt in attempts:
                if attempt.final:
                    self._settle(self.ledger.state_of(attempt, EpisodeStatus.REJECTED, detail=attempt.reason))

    def quarantine(self, index: int, variants: Sequence[int] = (0,), *, evidence: Mapping[str, Any]) -> None:
        """Exclude variants of an episode from further leases, unless they are stored.

        Args:
            index: Index of the episode in the run.
            variants: Variants to exclude.
            evidence: Reason; plain JSON values.

        Raises:
            StorageError: The disk is full.
        """
        with self._turn, self.ledger.batch():
            for variant in variants:
                values = {"state": EpisodeStatus.QUARANTINED, "detail": json.dumps(dict(evidence))}
                self._settle(EpisodeState(task=self.ledger.task, idx=index, variant=variant, **values))

    def fault(self, *faults: Fault) -> None:
        """Record faults; they are durable with the next batch or :meth:`flush`."""
        self.ledger.defer(*faults)

    def spans(self, spans: Iterable[TimeSpan]) -> None:
        """Record time spans of workers; they are durable with the next batch or :meth:`flush`."""
        self.ledger.defer(*spans)

    def flush(self) -> None:
        """Write deferred rows, and ``dataset.json`` if its last write is long enough ago.

        Raises:
            StorageError: The disk is full.
        """
        with self._turn:
            self.ledger.flush()
            self._write_info(when_due=True)

    def close(self) -> None:
        """Write deferred rows, close the ledger and release the lock."""
        if self._lock:
            with suppress(StorageError):  # the failed write was reported; opening the dataset again repairs this
                self.ledger.flush()
            with suppress(StorageError):
                self._write_info()
            self.ledger.close()
            self._lock.release()
            self._lock = None

    def __enter__(self) -> Dataset:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _count(self, taken: Sequence[StagedEpisode]) -> list[Attempt]:
        info = self.info
        for item in taken:
            info = merge(info, item.learned) if item.learned else info
        self.info = replace(
            info,
            episode_count=info.episode_count + len(taken),
            step_count=info.step_count + sum(item.attempt.step_count for item in taken),
            byte_count=info.byte_count + sum(item.attempt.stored_bytes for item in taken),
        )
        with suppress(StorageError):  # the episodes are stored; a later write updates dataset.json
            self._write_info(when_due=True)
        return [item.attempt for item in taken]

    def _settle(self, settled: EpisodeState) -> None:
        known = self.ledger.episode(settled.idx, settled.variant)
        if known is None or known.state in (EpisodeStatus.PENDING, EpisodeStatus.LEASED):
            self.ledger.record(replace(settled, lease=known.lease if known else 0))

    def _write_info(self, *, when_due: bool = False) -> None:
        # New names and fields are written at once: readers of a running dataset need them, and so does a cluster's
        # head, which gets them with the episode in which they occur.
        has_more = _without_counts(self.info) != _without_counts(self._written)
        is_due = has_more or time.monotonic() - self._written_at >= _INFO_PERIOD
        if self.info != self._written and (is_due or not when_due):
            self._written_at = time.monotonic()
            replace_text(self.folder / INFO_NAME, info_text(self.info))
            self._written = self.info

    def _recover(self) -> None:
        """Recover from an interrupted run; move files without a ledger row aside, and remove rows without a file."""
        stored = self._forget_outdated()
        with disk(self.folder):
            for subfolder in (self.stage, self.episodes):
                make_subfolder(subfolder)
        # Recovery completes commits first; only after that, a file without a row belongs to no episode.
        self.recovered = recover(self.folder, self.ledger, self._publisher)
        if self.recovered.rolled_forward:
            stored = [_StoredRow.of(attempt) for attempt in self.ledger.walk_attempts(only_stored=True)]
        with disk(self.folder):
            known = {path for row in stored for path in row.paths}
            files = (path for kind in ("*.hdf5", "*.mp4") for path in self.episodes.glob(kind))
            strays = [path for path in files if f"episodes/{path.name}" not in known]
            self._publisher.orphans += [quarantine_file(path, self.folder / ORPHANS) for path in sorted(strays)]
            sync_folder(self.folder)
        clear_failures(self.folder, self.ledger)
        self._recount(stored)

    def _forget_outdated(self) -> list[_StoredRow]:
        """Remove stored episodes with missing or changed files from the ledger; return the remaining ones."""
        there: list[_StoredRow] = []
        outdated: list[Attempt] = []
        for attempt in self.ledger.walk_attempts(only_stored=True):
            if has_files(self.folder, attempt):
                there.append(_StoredRow.of(attempt))
            else:
                outdated.append(attempt)
        # The ledger is written before dataset.json, so it cannot have fewer episodes.
        if (count := len(there) + len(outdated)) < self.info.episode_count:
            what = f"lists {count} episodes, but {INFO_NAME} counts {self.info.episode_count}"
            raise InputError(what, where=str(self.ledger.path), instead=RESTORE)
        if outdated:
            # dataset.json is reduced before the ledger: if the process is killed in between, it has fewer episodes than
            # the ledger, which is accepted, and not more.
            self._recount(there)
            self.ledger.forget(outdated)
            self.outdated = tuple(_first_outdated(self.folder, attempt) for attempt in outdated)
        return there

    def _recount(self, stored: list[_StoredRow]) -> None:
        """Update ``dataset.json`` from the ledger, because a killed run may not have counted its last episodes."""
        info = self.info
        # Only episodes that dataset.json has not counted are read: reading every file of a large dataset takes minutes.
        behind = len(stored) - info.episode_count if info.features and info.rate else len(stored)
        for row in _latest(stored, behind):
            try:
                info = merge(info, infer_dataset_info_from_file(info, self.folder / row.path))
            except StoreAwayError:  # skipping the episode would leave its fields out of dataset.json for good
                raise
            except InputError as error:  # `nimbus verify` reports it; a damaged file must not block a run
                _log.warning("not counted in %s: %s", INFO_NAME, error)
        self.info = replace(
            info,
            episode_count=len(stored),
            step_count=sum(row.step_count for row in stored),
            byte_count=sum(row.byte_count for row in stored),
        )
        self._write_info()


def _without_counts(info: DatasetInfo) -> DatasetInfo:
    return replace(info, episode_count=0, step_count=0, byte_count=0)


def _first_outdated(folder: Path, attempt: Attempt) -> Path:
    """Return the first file of an episode that is missing or changed."""
    return next(folder / path for path, size in attempt.files.items() if not is_stored(folder / path, size))


def _latest(stored: list[_StoredRow], count: int) -> list[_StoredRow]:
    """Return the last ``count`` committed rows, and those too close in time to be distinguished from them."""
    if count <= 0:
        return []
    ordered = sorted(stored, key=lambda row: -row.ended)
    since = ordered[count - 1].ended - _LATE
    return [row for row in ordered if row.ended >= since]
