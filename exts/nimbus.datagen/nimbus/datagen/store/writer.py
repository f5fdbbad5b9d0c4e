"""Writer of the store stage, which encodes HDF5 episodes in one thread while the next images are rendered."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Self

from nimbus.datagen.episode.trajectory import Trajectory
from nimbus.datagen.files.strict_yaml import StrictModel
from nimbus.datagen.pipeline import RunContext, register_component
from nimbus.datagen.stages import Rendered, Stored, TimedObservations, Writer
from nimbus.datagen.store.background import AtOnce, Background
from nimbus.datagen.store.episode_file.jobs import EpisodeJobs, Images
from nimbus.datagen.store.episode_sink import EpisodeSink, shelf_of
from nimbus.datagen.store.failures import keep_failure
from nimbus.datagen.store.ledger.attempt import Attempt, KeptFailure, attempt_of


class Hdf5Settings(StrictModel):
    """Settings of :class:`Hdf5Writer`."""

    compression: int = 1
    queue_length: int = 2
    images: Images = "lossless"


class Hdf5Writer(Writer):
    """Writer that stages and commits successful attempts, and records failed ones.

    Args:
        dataset: Destination of episodes; the writer does not close it.
        compression: Level of gzip, 1 (fast) to 9 (small).
        queue_length: Largest number of queued chunks of observations; a full queue blocks the renderer.
        overlap: Finish an episode (last chunks, sync, commit) while the next one renders. :meth:`process` then yields
            nothing for it, and an error is raised by the next call.
        images: Store sRGB images lossless in the episode's file, as H.264 in an MP4 per camera, or both.
        synchronous: Encode each chunk before the next one is rendered, without a thread.
        keep_failures: Also store failed attempts, separate from the episodes.
    """

    @classmethod
    def create(cls, context: RunContext, settings: Hdf5Settings) -> Self:
        """Create the writer of a run."""
        return cls(
            shelf_of(context),
            compression=settings.compression,
            queue_length=settings.queue_length,
            overlap=context.overlap,
            images=settings.images,
            synchronous=context.synchronous,
            keep_failures=context.keep_failures,
        )

    def __init__(
        self,
        dataset: EpisodeSink,
        *,
        compression: int = 1,
        queue_length: int = 2,
        overlap: bool = False,
        images: Images = "lossless",
        synchronous: bool = False,
        keep_failures: bool = False,
    ) -> None:
        self.dataset = dataset
        self._images: Images = images
        self._compression = compression
        self._overlap = overlap
        self._keep_failures = keep_failures
        self._io = AtOnce() if synchronous else Background(length=queue_length)

    def process(self, item: Rendered) -> Iterator[Stored]:
        """Store one attempt.

        Raises:
            StorageError: The disk is full; nothing of this episode stays.
        """
        # This raises the error of an earlier episode before a new one is begun.
        self._io.is_busy()
        taken = self._write(item) if item.trajectory.outcome.success else self._fail(item)
        for attempt in taken:
            yield _stored(item, attempt)

    def pending(self) -> bool:
        """Return True while the end of an episode is being written; raises its error."""
        return self._io.is_busy()

    def close(self) -> None:
        """Finish pending writes and stop the I/O thread."""
        self._io.close()

    def _write(self, item: Rendered) -> list[Attempt]:
        begin, shown = time.thread_time(), TimedObservations(item)
        jobs = EpisodeJobs(item, self.dataset, self._io, compression=self._compression, images=self._images)
        try:
            jobs.begin()
            for observation in shown:
                jobs.observe(observation)
            cpu_time = time.thread_time() - begin - shown.cpu_time
            if self._overlap:
                jobs.end_behind(render_time=shown.cpu_time, cpu_time=cpu_time)
                return []
            return jobs.end(render_time=shown.cpu_time, cpu_time=cpu_time)
        except BaseException:
            jobs.abandon()
            raise

    def keeps(self, trajectory: Trajectory) -> bool:
        """Return True if failed attempts are to be kept and the robot moved in this one."""
        return self._keep_failures and trajectory.step_count > 0

    def keep(self, item: Rendered, shown: TimedObservations) -> KeptFailure | None:
        """Store a failed attempt if it is to be kept; record nothing.

        Raises:
            StorageError: The disk is full.
        """
        if not self.keeps(item.trajectory):
            return None
        return keep_failure(item, shown, stage=self.dataset.stage, compression=self._compression)

    def _fail(self, item: Rendered) -> list[Attempt]:
        """Record a failed attempt; its rendered images are dropped unless they are kept."""
        started, begin, shown = time.time(), time.thread_time(), TimedObservations(item)
        kept = self.keep(item, shown)
        # Dropped images are consumed as well, so that the renderer measures their time and finishes its work.
        for _ in shown:
            pass
        times = dict(item.times)
        times["render"] = times.get("render", 0.0) + shown.cpu_time
        times["store"] = time.thread_time() - begin - shown.cpu_time
        attempt = attempt_of(
            item.layout,
            item.trajectory,
            attempt=item.attempt,
            final=item.final,
            times=times,
            started=started,
            failure=kept,
        )
        self.dataset.record([attempt])
        return [attempt]


register_component("store", "hdf5", Hdf5Writer, Hdf5Settings)


def _stored(item: Rendered, attempt: Attempt) -> Stored:
    return Stored(
        episode_id=attempt.episode_id,
        index=attempt.idx,
        variant=attempt.variant,
        attempt=attempt.attempt,
        outcome=item.trajectory.outcome,
        final=attempt.final,
        path=attempt.path,
        step_count=attempt.step_count,
        byte_count=attempt.stored_bytes,
        times=attempt.times,
    )
