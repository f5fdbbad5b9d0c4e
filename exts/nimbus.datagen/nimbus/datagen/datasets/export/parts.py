"""Preparation of episodes for an export: signals, histograms and encoded videos. Existing results are reused."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.datasets.export.source import ExportItem, Signals, Source, read_signals
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.atomic import replacing
from nimbus.datagen.files.own_files import file_name
from nimbus.datagen.machine import usable_cores
from nimbus.datagen.store.episode_file.h264 import CODEC, ENCODER, PIXELS, Encoder, check_size
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.datagen.store.episode_file.statistics import histogram
from nimbus.datagen.store.episode_file.videos import file_hash
from nimbus.datagen.store.publish import disk

T = TypeVar("T")

_make: Callable[[Any], None]
"""Function of this worker process. It is sent once, because it may contain the table of a whole dataset."""
_SAFE_PATH = "PYTHONSAFEPATH"
"""Environment variable that excludes the current folder from the module path of new interpreters."""
_BLOCK = 32
"""Number of frames read at a time."""
_PIXELS_PER_WORKER = 20_000_000
"""Number of pixels for which a further process is started; encoding fewer takes less time than starting a process."""


def make_all(
    make: Callable[[T], None], items: Sequence[T], *, workers: int, tell: Callable[[int], None] = lambda left: None
) -> None:
    """Process every item, in parallel processes if there are several workers.

    Args:
        make: Function of a module, or method of an object that can be sent to another process.
        items: Items to process, started in this order.
        workers: Number of processes; with 1, everything runs in this process.
        tell: Called with the number of remaining items, after each item.

    Raises:
        InputError: ``make`` raised it for an item; the worker processes are ended.
        BrokenProcessPool: A worker process died.
    """
    count = min(workers, len(items))
    if count > 1:
        _in_processes(make, items, count, tell)
        return
    for done, item in enumerate(items, start=1):
        make(item)
        tell(len(items) - done)


def _in_processes(make: Callable[[T], None], items: Sequence[T], count: int, tell: Callable[[int], None]) -> None:
    others = set(multiprocessing.active_children())
    context = multiprocessing.get_context("spawn")
    with (
        _without_current_folder(),
        ProcessPoolExecutor(count, mp_context=context, initializer=_begin, initargs=(make,)) as pool,
    ):
        try:
            futures = [pool.submit(_make_one, item) for item in items]
            for done, future in enumerate(as_completed(futures), start=1):
                future.result()
                tell(len(items) - done)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in set(multiprocessing.active_children()) - others:
                process.terminate()
            raise


@contextmanager
def _without_current_folder() -> Iterator[None]:
    """Exclude the current folder from the module path of processes that start in this context.

    Files in the current folder may have the names of modules. ``multiprocessing`` cannot pass the option ``-P`` to an
    interpreter, so the environment variable is set instead.
    """
    before = os.environ.get(_SAFE_PATH)
    os.environ[_SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_SAFE_PATH]
        else:
            os.environ[_SAFE_PATH] = before


def _begin(make: Callable[[Any], None]) -> None:
    """Initialize a worker process."""
    global _make
    _make = make
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent receives the signal as well, and ends this process
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this process when its parent dies; otherwise it would wait for the executor forever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)


def _make_one(item: Any) -> None:
    _make(item)


@dataclass(frozen=True, kw_only=True)
class EpisodePart:
    """Prepared episode."""

    item: ExportItem
    signals: Signals
    histograms: dict[str, NDArray[np.int64]]
    """(3, 256) histogram of the image levels per color channel, by camera."""
    videos: dict[str, Path]
    """Path of the video by camera."""


class EpisodeParts:
    """Folder of prepared episodes, whose files are named after the content hashes of the episodes.

    Args:
        source: Dataset to export.
        folder: Path of the folder.
    """

    def __init__(self, source: Source, folder: Path) -> None:
        self._source = source
        self._folder = folder

    def missing(self) -> list[ExportItem]:
        """Return the items that are not prepared yet, in order."""
        return [item for item in self._source.items if not self._signals(item).exists()]

    def make(self, item: ExportItem) -> None:
        """Prepare an episode. Each file is written atomically; the file of signals is last and marks completion.

        Raises:
            InputError: The episode differs from the others in joints, actions or cameras, or cannot be read.
            StorageError: The disk is full.
        """
        source = self._source
        with EpisodeFile(item.path) as episode, disk(self._folder):
            signals = read_signals(episode, source)
            histograms = {camera: self._filmed(item, episode, camera) for camera in source.cameras}
            with replacing(self._signals(item), durable=True, shared=True) as temporary, temporary.open("wb") as file:
                arrays: dict[str, Any] = {
                    "state": signals.state,
                    "velocity": signals.velocity,
                    "action": signals.action,
                    "instruction": np.frombuffer(signals.instruction.encode(), np.uint8),
                    "histograms": np.array([*histograms.values()], np.int64),
                }
                np.savez(file, allow_pickle=False, **(arrays | signals.extra))

    def read(self, item: ExportItem) -> EpisodePart:
        """Read a prepared episode."""
        with np.load(self._signals(item)) as arrays:
            signals = Signals(
                state=arrays["state"],
                velocity=arrays["velocity"],
                action=arrays["action"],
                instruction=arrays["instruction"].tobytes().decode(),
                extra={name: arrays[name] for name in self._source.extra_names},
            )
            histograms = dict(zip(self._source.cameras, arrays["histograms"], strict=True))
        videos = {camera: self.video(item, camera) for camera in self._source.cameras}
        return EpisodePart(item=item, signals=signals, histograms=histograms, videos=videos)

    def __iter__(self) -> Iterator[EpisodePart]:
        return map(self.read, self._source.items)

    def video(self, item: ExportItem, camera: str) -> Path:
        """Return the video of an item: the stored one if it can be used unchanged, otherwise the prepared one."""
        encoded = self._encoded(item, camera)
        return item.videos[camera] if camera in item.videos and not encoded.exists() else encoded

    def _encoded(self, item: ExportItem, camera: str) -> Path:
        return self._folder / f"{file_name(item.sha256)}.{list(self._source.cameras).index(camera)}.mp4"

    def _signals(self, item: ExportItem) -> Path:
        return self._folder / f"{file_name(item.sha256)}.npz"

    def _filmed(self, item: ExportItem, episode: EpisodeFile, camera: str) -> NDArray[np.int64]:
        """Return the histogram of a camera's images; encode the video if the stored one cannot be used unchanged."""
        record = episode.videos.get(camera)
        settings = (record.codec, record.pixel_format, record.encoder, record.fps) if record else ()
        if not record or settings != (CODEC, PIXELS, ENCODER, self._source.fps):
            return self._encode(item, episode, camera)
        path = episode.video_file(camera)
        if not path.is_file() or file_hash(path) != (record.byte_count, record.sha256):
            what = "the video is missing or has changed"
            raise InputError(what, where=str(path), instead="run 'nimbus verify' for details")
        return episode.array(f"observations/histogram/{camera}")

    def _encode(self, item: ExportItem, episode: EpisodeFile, camera: str) -> NDArray[np.int64]:
        counts = np.zeros((3, 256), np.int64)
        fps, size = self._source.fps, self._source.cameras[camera]
        check_size(camera, size, where=self._source.folder)
        with (
            replacing(self._encoded(item, camera), durable=True, shared=True) as temporary,
            _closing(Encoder(temporary, fps=fps, size=size)) as video,
        ):
            for start in range(0, episode.step_count, _BLOCK):
                images = episode.rows(f"observations/images/{camera}", slice(start, start + _BLOCK))
                video.write(images)
                counts += histogram(images)
        return counts


@contextmanager
def _closing(video: Encoder) -> Iterator[Encoder]:
    try:
        yield video
    except BaseException:
        video.abandon()
        raise
    video.finish()


def prepare(source: Source, folder: Path, *, workers: int | None = None, tell: Callable[[int], None]) -> None:
    """Prepare the missing episodes, in several processes if that is faster.

    Args:
        source: Dataset to export.
        folder: Folder of prepared episodes.
        workers: Number of processes; by default chosen from the amount of work and the cores.
        tell: Called with the number of remaining episodes, after each episode.

    Raises:
        InputError: An episode differs from the others in joints, actions or cameras, or cannot be read.
        StorageError: The disk is full.
    """
    parts = EpisodeParts(source, folder)
    missing = parts.missing()
    make_all(parts.make, missing, workers=workers or _worker_count(source, missing), tell=tell)


def _worker_count(source: Source, items: list[ExportItem]) -> int:
    frames = sum(item.step_count for item in items if not item.videos)  # stored videos are copied unchanged
    pixels = frames * sum(width * height for width, height in source.cameras.values())
    return min(usable_cores(), 1 + pixels // _PIXELS_PER_WORKER)
