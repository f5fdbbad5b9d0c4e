"""Jobs that encode, stage and commit one episode."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal

from nimbus.datagen.episode.observation import Observation
from nimbus.datagen.stages import Rendered, named_errors
from nimbus.datagen.store.background import AtOnce, Background
from nimbus.datagen.store.commit import StagedEpisode
from nimbus.datagen.store.episode_file.encode import EpisodeEncoder
from nimbus.datagen.store.episode_file.videos import VideoRecord, staged_video_path, stored_video, video_path
from nimbus.datagen.store.episode_sink import EpisodeSink
from nimbus.datagen.store.info import DatasetInfo, infer_dataset_info, merge
from nimbus.datagen.store.ledger.attempt import Attempt, WrittenFiles, attempt_of
from nimbus.datagen.store.publish import disk

Images = Literal["lossless", "video", "both"]
"""Storage of sRGB images: lossless in the HDF5 file, as H.264 videos beside it, or both."""


class EpisodeJobs:
    """Jobs that write one successful attempt to ``stage/<episode_id>.<lease>.<pid>.tmp`` and commit it.

    Videos of its cameras are ``stage/<episode_id>.<camera>.<lease>.<pid>.tmp``. A job that fails removes the files, and
    the following jobs of the episode are skipped.

    Args:
        item: The attempt; its observations follow through :meth:`observe`.
        shelf: Destination of the episode.
        io: Executor of the jobs.
        compression: Level of gzip.
        images: Storage of sRGB images.

    Raises:
        StorageError: The disk is full.
    """

    def __init__(
        self,
        item: Rendered,
        shelf: EpisodeSink,
        io: Background | AtOnce,
        *,
        compression: int,
        images: Images = "lossless",
    ) -> None:
        self._item = item
        self._shelf = shelf
        self._io = io
        self._started = time.time()
        self._wait_time = 0.0
        self._cpu_time = 0.0
        self._is_open = True
        key = item.layout.key
        self._lease = shelf.lease_of(key.index, key.variant)
        # The name contains the lease and the process id, so that two workers with the same episode never share a file.
        self._path = shelf.stage / f"{key.id}.{self._lease}.{os.getpid()}.tmp"
        self._videos: dict[str, VideoRecord] = {}
        with disk(self._path):
            self._encoder = EpisodeEncoder(
                self._path,
                compression=compression,
                lossless=images != "video",
                video=self._staged_video if images != "lossless" else None,
            )

    def begin(self) -> None:
        """Queue everything but the images."""
        item = self._item
        job = partial(self._encoder.episode, item.layout, item.trajectory, item.labels, item.scene.provenance)
        self._io.put(partial(self._run, job))

    def observe(self, observation: Observation) -> None:
        """Queue a chunk of observations; raises the error of an earlier job."""
        job = partial(self._run, self._encoder.observation, observation, step_count=self._item.trajectory.step_count)
        self._wait_time += self._io.put(job, large=True)
        self._encoder.check()

    def end(self, *, render_time: float, cpu_time: float) -> list[Attempt]:
        """Stage the file and commit it; see :meth:`EpisodeSink.commit`.

        Args:
            render_time: CPU time of its observations [s].
            cpu_time: Other CPU time of the caller [s].
        """
        self._io.put(partial(self._run, self._seal))
        self._wait_time += self._io.wait()
        return self._commit(render_time, self._beside(cpu_time))

    def end_behind(self, *, render_time: float, cpu_time: float) -> None:
        """Queue the staging and the commit as a last job, without waiting for it."""
        beside = self._beside(cpu_time)
        self._io.put(partial(self._run, self._seal_and_commit, render_time, beside))

    def abandon(self) -> None:
        """Remove the files after an error; all jobs have ended when this returns."""
        self._io.end_with(self._discard)

    def _run(self, job: Callable[..., object], *args: Any, **options: Any) -> None:
        if not self._is_open:
            return
        begin = time.thread_time()
        try:
            with named_errors("store", self._item):
                job(*args, **options)
        except BaseException:
            self._discard()
            raise
        finally:
            self._cpu_time += time.thread_time() - begin

    def _seal_and_commit(self, render_time: float, cpu_time: float) -> None:
        begin = time.thread_time()
        self._seal()
        self._commit(render_time, cpu_time + time.thread_time() - begin)

    def _seal(self) -> None:
        """Close and sync the files."""
        self._videos = self._encoder.finish(step_count=self._item.trajectory.step_count)
        self._is_open = False
        self._encoder.close()
        self._encoder.check()

    def _commit(self, render_time: float, cpu_time: float) -> list[Attempt]:
        item, name = self._item, self._item.layout.key.id
        times = item.times | {
            "render": item.times.get("render", 0.0) + render_time,
            "store": self._cpu_time + cpu_time,
            "store_wait": self._wait_time,
        }
        attempt = attempt_of(
            item.layout,
            item.trajectory,
            attempt=item.attempt,
            final=item.final,
            times=times,
            started=self._started,
            written=WrittenFiles(
                path=f"episodes/{name}.hdf5",
                byte_count=self._path.stat().st_size,
                sha256=self._encoder.hash.hexdigest(),
                videos=tuple(stored_video(video, episode=name, camera=at) for at, video in self._videos.items()),
            ),
        )
        staged = StagedEpisode(attempt=attempt, path=self._path, lease=self._lease, learned=self._learned())
        return self._shelf.commit([staged])

    def _learned(self) -> DatasetInfo | None:
        item, known = self._item, self._shelf.info
        told = infer_dataset_info(known, item.layout, item.trajectory, item.labels, self._encoder.features)
        return None if merge(known, told) == known else told

    def _discard(self) -> None:
        """Close and remove the files; repeated calls do nothing."""
        self._is_open = False
        self._encoder.discard()

    def _staged_video(self, camera: str) -> Path:
        name = self._item.layout.key.id
        return staged_video_path(self._path, name, video_path(name, camera))

    def _beside(self, cpu_time: float) -> float:
        """Return the caller's CPU time without that of jobs that ran in its own thread [s]."""
        return cpu_time - self._cpu_time if isinstance(self._io, AtOnce) else cpu_time
