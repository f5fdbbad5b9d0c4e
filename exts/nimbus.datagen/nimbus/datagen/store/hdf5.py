"""The writer of the store stage: episodes as HDF5 files, encoded by one thread while the next images are rendered."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from nimbus.datagen.errors import StorageError
from nimbus.datagen.registry import register
from nimbus.datagen.stages import OnDemand, Rendered, Stored, Writer
from nimbus.datagen.store.dataset import Dataset, DatasetInfo
from nimbus.datagen.store.encode import EpisodeEncoder
from nimbus.datagen.store.learn import learned
from nimbus.datagen.store.ledger import Attempt
from nimbus.datagen.store.publish import disk, publish


@register("store", "hdf5")
class Hdf5Writer(Writer):
    """Stores successful attempts as ``episodes/<episode_id>.hdf5`` and records every attempt in the ledger.

    Args:
        dataset: The open dataset; the writer does not close it.
        compression: Level of gzip, 1 (fast) to 9 (small).
        queue_length: Chunks of observations that may wait for the disk; more waiting holds the renderer up.
    """

    def __init__(self, dataset: Dataset, *, compression: int = 1, queue_length: int = 2) -> None:
        self.dataset = dataset
        self._compression = compression
        self._queue_length = queue_length
        # One thread: HDF5 has a lock of its own, more threads would only wait for it.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="store")

    def process(self, item: Rendered) -> Iterator[Stored]:
        """Store one attempt.

        Raises:
            StorageError: The disk is full; nothing of this episode stays.
        """
        started = time.time()
        outcome = _Written() if not item.trajectory.outcome.success else self._write(item)
        attempt = _attempt(item, outcome, started=started)
        try:
            self.dataset.record(attempt, learned=outcome.learned)
        except StorageError:
            if attempt.path:
                (self.dataset.folder / attempt.path).unlink()
            raise
        yield _stored(item, attempt)

    def close(self) -> None:
        """Stop the I/O thread."""
        self._thread.shutdown()

    def _write(self, item: Rendered) -> _Written:
        episode_id = item.layout.key.id
        staged = self.dataset.stage / f"{episode_id}.hdf5.tmp"
        final = self.dataset.episodes / f"{episode_id}.hdf5"
        begin = time.thread_time()
        shown = OnDemand(item)
        jobs = _Jobs(self._thread, length=self._queue_length)
        try:
            with disk(staged):
                encoder = EpisodeEncoder(staged, compression=self._compression)
            try:
                jobs.put(encoder.episode, item.layout, item.trajectory, item.labels, item.scene.provenance)
                for observation in shown:
                    jobs.put(encoder.observation, observation, step_count=item.trajectory.step_count)
                    encoder.check()
                jobs.put(encoder.finish, step_count=item.trajectory.step_count)
            finally:
                jobs.end(encoder.close)
            encoder.check()
            byte_count = staged.stat().st_size
            with disk(final):
                publish(staged, final)
        finally:
            staged.unlink(missing_ok=True)
        return _Written(
            path=final.relative_to(self.dataset.folder).as_posix(),
            byte_count=byte_count,
            sha256=encoder.hash.hexdigest(),
            times={
                "render": item.times.get("render", 0.0) + shown.cpu_time,
                "store": jobs.cpu_time + time.thread_time() - begin - shown.cpu_time,
                "store_wait": jobs.wait_time,
            },
            learned=learned(self.dataset.info, item.layout, item.trajectory, item.labels, encoder.features),
        )


@dataclass(frozen=True, kw_only=True)
class _Written:
    path: str = ""
    byte_count: int = 0
    sha256: str = ""
    times: dict[str, float] | None = None
    learned: DatasetInfo | None = None


class _Jobs:
    """Jobs for the I/O thread, in order; the caller waits when more than ``length`` are not done."""

    def __init__(self, thread: ThreadPoolExecutor, *, length: int) -> None:
        self.cpu_time = 0.0
        self.wait_time = 0.0
        self._thread = thread
        self._length = length
        self._failed = False
        self._running: deque[Future[None]] = deque()

    def put(self, job: Callable[..., None], *args: Any, **options: Any) -> None:
        """Queue a job, skipped once one has failed; raises what an earlier job raised."""
        self._running.append(self._thread.submit(self._run, job, *args, **options))
        self._wait(self._length)

    def end(self, job: Callable[[], None]) -> None:
        """Run the last job, whatever became of the others, and wait for all; raises what one raised."""
        self._running.append(self._thread.submit(self._timed, job))
        self._wait(0)

    def _wait(self, length: int) -> None:
        start = time.perf_counter()
        try:
            while len(self._running) > length:
                self._running.popleft().result()
        finally:
            self.wait_time += time.perf_counter() - start

    def _run(self, job: Callable[..., None], *args: Any, **options: Any) -> None:
        if self._failed:
            return
        try:
            self._timed(job, *args, **options)
        except BaseException:
            self._failed = True
            raise

    def _timed(self, job: Callable[..., None], *args: Any, **options: Any) -> None:
        start = time.thread_time()
        try:
            job(*args, **options)
        finally:
            self.cpu_time += time.thread_time() - start


def _attempt(item: Rendered, written: _Written, *, started: float) -> Attempt:
    key, trajectory = item.layout.key, item.trajectory
    objects = tuple(
        {
            "name": placed.name,
            "kind": placed.kind,
            "variant": str(placed.variant),
            "class": placed.object_class,
            "rest_pose": placed.rest_pose,
        }
        for placed in item.layout.physical.objects
    )
    return Attempt(
        episode_id=key.id,
        task=key.task,
        seed=key.seed,
        idx=key.index,
        variant=key.variant,
        attempt=item.attempt,
        final=item.final,
        success=trajectory.outcome.success,
        phase=trajectory.outcome.phase,
        reason=trajectory.outcome.reason.value,
        detail=trajectory.outcome.detail,
        step_count=trajectory.step_count,
        duration=trajectory.step_count / trajectory.rate,
        byte_count=written.byte_count,
        path=written.path,
        sha256=written.sha256,
        times=item.times | (written.times or {}),
        objects=objects,
        started=started,
        ended=time.time(),
    )


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
        byte_count=attempt.byte_count,
        times=attempt.times,
    )
