"""Where a worker's writer puts what it made: it tells the supervisor, who alone writes the dataset."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nimbus.datagen.store.commit import StagedEpisode
from nimbus.datagen.store.info import DatasetInfo, merge
from nimbus.datagen.store.ledger.attempt import Attempt
from nimbus.runner.cell.transport.messages import EpisodeWritten, Recorded
from nimbus.runner.cell.worker.result_batch import ResultBatch


class RemoteSink:
    """A :class:`nimbus.datagen.store.episode_sink.EpisodeSink` in another process than the dataset's.

    Args:
        folder: The dataset's folder.
        batch: To the supervisor; the I/O thread may commit.
    """

    def __init__(self, folder: Path, batch: ResultBatch) -> None:
        self.folder = folder
        self.stage = folder / "stage"
        self.info = DatasetInfo(task="", task_hash="", seed=0)  # the names are the supervisor's to give
        self._batch = batch
        self._lease = 0

    def begin(self, lease: int) -> None:
        """What is begun from now on belongs to that lease."""
        self._lease = lease

    def lease_of(self, index: int, variant: int = 0) -> int:
        """The lease of the episode that is begun now."""
        return self._lease

    def record(self, attempts: Sequence[Attempt]) -> None:
        """Tell of failed attempts at one episode."""
        self._batch.result(Recorded(index=attempts[0].idx, lease=self._lease, attempts=tuple(attempts)))

    def commit(self, staged: Sequence[StagedEpisode]) -> list[Attempt]:
        """Tell of episodes whose files are whole; the supervisor decides whether they are taken."""
        for item in staged:
            news = None
            if item.learned and (known := merge(self.info, item.learned)) != self.info:
                news = self.info = known
            path = item.path.relative_to(self.folder).as_posix()
            written = EpisodeWritten(
                index=item.attempt.idx, lease=item.lease, attempt=item.attempt, path=path, learned=news
            )
            self._batch.result(written)
        return [item.attempt for item in staged]
