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
"""Files whose ends are fetched at the same time."""
IMAGES = "observation.images."
"""Prefix of the names of cameras."""


class Closable(Protocol):
    """Reader that holds a file open."""

    def close(self) -> None:
        """Let go of it."""
        ...


T = TypeVar("T", bound=Closable)


class Recent(Generic[T]):
    """Open things by key; the one unused for longest is closed when there are too many.

    Args:
        most: How many stay open.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: OrderedDict[Hashable, T] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the open value of a key, made on first use."""
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
    """A dataset of episodes, read by row. One thread at a time may use it."""

    @property
    def fps(self) -> int:
        """Frames a second."""
        ...

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Count the frames of each episode, (E,)."""
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
        """Read columns (E,) with a value an episode: ``success``, ``seed``, …, each in its own unit.

        Some formats know more than others.
        """
        ...

    @property
    def is_stored(self) -> bool:
        """True where reading goes to a store, and :meth:`fetch` ahead of it pays."""
        ...

    def fetch(self, blocks: Sequence[FrameBlock], cameras: Sequence[str]) -> None:
        """Fetch what images and signals of some blocks need from a store, several pieces at a time.

        What cannot be had raises when it is read.
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
    """Fetch what some blocks of episodes need; see :meth:`Frames.fetch`.

    Args:
        spans: HDF5 file of each block's episode.
        blocks: Of frames.
        cameras: Whose images will be read.
        open_episode: Opens an episode by number.
    """
    with ThreadPoolExecutor(_OPENED) as pool:
        list(pool.map(lambda span: span.fetch_ends(), spans))
    for block in blocks:
        with suppress(InputError):
            open_episode(block.episode).fetch(cameras, block.start, block.stop)


def open_frames(folder: Path | str, *, open_files: int = 16, view: SignalView | None = None) -> Frames:
    """Open a dataset of Nimbus, its shards, or a LeRobot v3.0 dataset.

    Args:
        folder: Folder of the dataset, or its address in a store.
        open_files: Episodes or videos that stay open at once.
        view: Signals to give; those that are stored by default. LeRobot's files have one view, which they were made in.

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
