"""Queue of workers' results: failed attempts become ledger rows, episode files enter the dataset in groups."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import replace
from typing import Protocol

from msgspec import structs

from nimbus.datagen.files.own_files import remove_file
from nimbus.datagen.store.commit import StagedEpisode
from nimbus.datagen.store.dataset import Dataset
from nimbus.datagen.store.info import DatasetInfo
from nimbus.datagen.store.ledger.attempt import Attempt
from nimbus.runner.cell.transport.messages import EpisodeWritten, Recorded
from nimbus.runner.cell.worker_pool import WorkerHandle

_GROUP = 32
"""Largest number of results in one commit."""
_GROUP_WAIT = 0.1
"""Longest time that the oldest result waits for its commit [s].

A commit syncs the ledger twice, however many results it holds; groups divide that cost. Workers do not wait for it.
"""


class CommitReceiver(Protocol):
    """Receiver of the result of each commit."""

    def note_failed(self, handle: WorkerHandle, message: Recorded) -> None:
        """Handle failed attempts that are now in the ledger."""
        ...

    def note_stored(self, handle: WorkerHandle, message: EpisodeWritten) -> None:
        """Handle an episode that is now in the dataset."""
        ...

    def note_refused(self, handle: WorkerHandle, message: EpisodeWritten) -> None:
        """Handle an episode whose file is missing or whose lease another worker holds."""
        ...


class CommitQueue:
    """Holds results until the dataset has them; while the disk is full they stay queued.

    Args:
        dataset: Opened by this process, its only writer.
        receiver: Notified of the outcome of each result.
        load_time: CPU time of loading the job, for all workers [s]; recorded with the first attempt.
    """

    def __init__(self, dataset: Dataset, receiver: CommitReceiver, *, load_time: float) -> None:
        self._dataset, self._receiver, self._load_time = dataset, receiver, load_time
        self._failed: deque[tuple[WorkerHandle, Recorded]] = deque()
        self._written: deque[tuple[WorkerHandle, EpisodeWritten]] = deque()
        self._since = 0.0
        """Arrival of the oldest waiting result [s monotonic]."""

    def record(self, handle: WorkerHandle, message: Recorded) -> None:
        """Queue failed attempts for the next :meth:`commit`."""
        self._wait()
        if self._load_time:
            first, *others = message.attempts
            message = structs.replace(message, attempts=(self._with_load_time(first), *others))
        self._failed.append((handle, message))

    def store(self, handle: WorkerHandle, message: EpisodeWritten) -> None:
        """Queue an episode for the next :meth:`commit`."""
        self._wait()
        if self._load_time:
            message = structs.replace(message, attempt=self._with_load_time(message.attempt))
        self._written.append((handle, message))

    def is_due(self, now: float) -> bool:
        """Return True when the group is full or its oldest result has waited long enough, at ``now`` [s monotonic]."""
        count = len(self._failed) + len(self._written)
        return count >= _GROUP or (count > 0 and now >= self._since + _GROUP_WAIT)

    def commit(self) -> bool:
        """Write all waiting results into the dataset; True when episodes were among them.

        Raises:
            StorageError: The disk is full. The results stay queued, and the next call tries again.
        """
        # Failures first: an episode's failed attempts are then in the ledger before the attempt that settles it.
        self._record_failures()
        if not self._written:
            return False
        stored = self._dataset.commit([self._staged(message) for _, message in self._written])
        # The queue is emptied only after the commit: a full disk raises above and leaves every result queued.
        taken = {attempt.episode_id for attempt in stored}
        while self._written:
            handle, message = self._written.popleft()
            note = self._receiver.note_stored if message.attempt.episode_id in taken else self._receiver.note_refused
            note(handle, message)
        return True

    @property
    def next_commit(self) -> float | None:
        """Time at which the waiting results are due [s monotonic]; None when none wait."""
        return None if self.is_empty else self._since + _GROUP_WAIT

    @property
    def is_empty(self) -> bool:
        """True when no result waits."""
        return not self._written and not self._failed

    @property
    def indices(self) -> set[int]:
        """Indices of the episodes whose file or last attempt waits for its commit."""
        written = {message.index for _, message in self._written}
        return written | {message.index for _, message in self._failed if message.attempts[-1].final}

    def forget_begun(self, handle: WorkerHandle) -> None:
        """Remove unfinished files of a worker that ended; files that it has reported stay."""
        # Staged names end with the writer's process id, so that only the files of this worker match.
        waiting = {message.path for _, message in self._written}
        for path in self._dataset.stage.glob(f"*.{handle.pid}.tmp"):
            if path.relative_to(self._dataset.folder).as_posix() not in waiting:
                remove_file(path)

    def _wait(self) -> None:
        if self.is_empty:
            self._since = time.monotonic()

    def _record_failures(self) -> None:
        if self._failed:
            self._dataset.record([attempt for _, message in self._failed for attempt in message.attempts])
        while self._failed:
            self._receiver.note_failed(*self._failed.popleft())

    def _with_load_time(self, attempt: Attempt) -> Attempt:
        # Loading is charged to one attempt only: all workers share it, and the times of all attempts must add up to the
        # CPU time of the run.
        load, self._load_time = self._load_time, 0.0
        return replace(attempt, times=attempt.times | {"load": attempt.times.get("load", 0.0) + load})

    def _staged(self, message: EpisodeWritten) -> StagedEpisode:
        learned = _named(message.learned, self._dataset.info) if message.learned else None
        path = self._dataset.folder / message.path
        return StagedEpisode(attempt=message.attempt, path=path, lease=message.lease, learned=learned)


def _named(learned: DatasetInfo, info: DatasetInfo) -> DatasetInfo:
    """Return a worker's description of the dataset, with task, seed and inputs taken from the dataset itself."""
    return replace(learned, task=info.task, task_hash=info.task_hash, seed=info.seed, inputs=info.inputs)
