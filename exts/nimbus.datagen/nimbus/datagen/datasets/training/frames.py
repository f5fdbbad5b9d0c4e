"""Interface of datasets to training readers, independent of the format."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.datasets.training.order import FrameBlock
from nimbus.datagen.errors import InputError
from nimbus.datagen.policies.signal_view import SignalView
from nimbus.datagen.store.byte_range import ByteRange
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.datagen.store.remote.working_copy import open_dataset

STATE, VELOCITY, ACTION = "observation.state", "observation.velocity", "action"
_OPENED = 8
"""Number of files whose ends are fetched at the same time."""
IMAGES = "observation.images."
"""Prefix of the names of cameras."""


class Closable(Protocol):
    """Reader that keeps a file open."""

    def close(self) -> None:
        """Close the file."""
        ...


T = TypeVar("T", bound=Closable)


class Recent(Generic[T]):
    """Cache of open objects by key; the least recently used is closed when there are too many.

    Args:
        most: Largest number of open objects.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: OrderedDict[Hashable, T] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the open object of a key; opened on first use."""
        if key not in self._open:
            made = make()
            while len(self._open) >= self._most:
                self._open.popitem(last=False)[1].close()
            self._open[key] = made
        self._open.move_to_end(key)
        return self._open[key]

    def __len__(self) -> int:
        return len(self._open)

    def close(self) -> None:
        """Close all."""
        while self._open:
            self._open.popitem()[1].close()


class Frames(Protocol):
    """Dataset of episodes, read by row. Not thread-safe."""

    @property
    def fps(self) -> int:
        """Frames per second."""
        ...

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Return the number of frames of each episode, (E,)."""
        ...

    @property
    def cameras(self) -> tuple[str, ...]:
        """Names of the cameras, sorted."""
        ...

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of signals."""
        ...

    def signals(self, episode: int) -> dict[str, NDArray[np.float32]]:
        """Return signals (T, D) by name."""
        ...

    def images(self, episode: int, camera: str, start: int, stop: int) -> NDArray[np.uint8]:
        """Return (n, H, W, 3) sRGB images of frames ``[start, stop)``."""
        ...

    def task(self, episode: int) -> str:
        """Return the instruction of an episode."""
        ...

    def facts(self) -> dict[str, NDArray[Any]]:
        """Read columns (E,) with one value per episode, such as ``success`` or ``seed``, each in its own unit.

        Some formats have more columns than others.
        """
        ...

    @property
    def is_stored(self) -> bool:
        """True if data is read from a store, so that :meth:`fetch` in advance saves time."""
        ...

    def fetch(self, blocks: Sequence[FrameBlock], cameras: Sequence[str]) -> None:
        """Fetch the data that images and signals of some blocks need from a store, several pieces at a time.

        Missing pieces raise an error when they are read.
        """
        ...

    def close(self) -> None:
        """Close all files."""
        ...


def fetch_blocks(
    spans: Sequence[ByteRange],
    blocks: Sequence[FrameBlock],
    cameras: Sequence[str],
    open_episode: Callable[[int], EpisodeFile],
) -> None:
    """Fetch the data that some blocks of episodes need; see :meth:`Frames.fetch`.

    Args:
        spans: HDF5 file of each block's episode.
        blocks: Blocks of frames.
        cameras: Cameras whose images will be read.
        open_episode: Opens an episode by number.
    """
    with ThreadPoolExecutor(_OPENED) as pool:
        list(pool.map(lambda span: span.fetch_ends(), spans))
    for block in blocks:
        with suppress(InputError):
            open_episode(block.episode).fetch(cameras, block.start, block.stop)


def open_frames(folder: Path | str, *, open_files: int = 16, view: SignalView | None = None) -> Frames:
    """Open a Nimbus dataset, its shards, or a LeRobot v3.0 dataset.

    Args:
        folder: Folder of the dataset, or its address in a store.
        open_files: Number of episodes or videos that stay open.
        view: Signals to give; the stored ones by default. LeRobot files have a single view.

    Raises:
        InputError: There is no dataset, it cannot be read, or it has no such view.
    """
    from nimbus.datagen.datasets.training.lerobot import LeRobotFrames
    from nimbus.datagen.datasets.training.native import StoredFrames
    from nimbus.datagen.datasets.training.sharded import ShardFrames

    folder = open_dataset(str(folder), has_ledger=False)
    for name, kind in {"dataset.json": StoredFrames, "manifest.parquet": ShardFrames}.items():
        if (folder / name).is_file():
            return kind(folder, open_files=open_files, view=view)
    if (folder / "meta/info.json").is_file():
        if view and not view.is_stored:
            what, instead = (
                "a LeRobot dataset has the view that it was exported in",
                "give the dataset it was made from",
            )
            raise InputError(what, where=f"view of {folder}", instead=instead)
        return LeRobotFrames(folder, open_files=open_files)
    what = "no dataset of Nimbus, no shards, and no LeRobot dataset is here"
    raise InputError(what, where=str(folder), instead="give the folder of a run or of an export")
