"""Interface between datasets and training readers, independent of the format."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.datasets.export.source import Signals
from nimbus.datagen.datasets.training.order import FrameBlock
from nimbus.datagen.errors import InputError
from nimbus.datagen.policies.signal_view import SignalView
from nimbus.datagen.store.byte_range import ByteRange
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.datagen.store.remote.working_copy import open_dataset

STATE, VELOCITY, ACTION = "observation.state", "observation.velocity", "action"
_OPENED = 8
"""Number of files whose first and last blocks are fetched in parallel."""
IMAGES = "observation.images."
"""Prefix of the features of cameras."""
_KEPT, _KEPT_BYTES = 256, 1 << 28
"""Number and bytes of the episodes whose signals are kept in memory; usual ones have 50 kB each."""


class Closable(Protocol):
    """Object that keeps a file open."""

    def close(self) -> None:
        """Close the file."""
        ...


T = TypeVar("T", bound=Closable)


class Recent(Generic[T]):
    """Cache of open objects by key; if there are too many, the least recently used one is closed.

    Args:
        most: Largest number of open objects.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: OrderedDict[Hashable, T] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the open object for a key; if there is none, ``make`` opens it."""
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
        """Close all objects."""
        while self._open:
            self._open.popitem()[1].close()


class KeptSignals:
    """Cache of the signals of the episodes that were read last, with a limit on their bytes and their number.

    Args:
        read: Reads the signals of an episode.
    """

    def __init__(self, read: Callable[[int], Signals]) -> None:
        self._read, self._byte_count = read, 0
        self._kept: OrderedDict[int, tuple[Signals, int]] = OrderedDict()

    def __call__(self, episode: int) -> Signals:
        """Return the signals of an episode."""
        if episode not in self._kept:
            found = self._read(episode)
            arrays = (found.state, found.velocity, found.action, *found.extra.values())
            size = sum(array.nbytes for array in arrays) + len(found.instruction)
            self._kept[episode] = found, size
            self._byte_count += size
            while len(self._kept) > 1 and (self._byte_count > _KEPT_BYTES or len(self._kept) > _KEPT):
                self._byte_count -= self._kept.popitem(last=False)[1][1]
        self._kept.move_to_end(episode)
        return self._kept[episode][0]


class Frames(Protocol):
    """Dataset whose episodes are read by frame. Not thread-safe."""

    @property
    def fps(self) -> int:
        """Frames per second [Hz]."""
        ...

    @property
    def lengths(self) -> NDArray[np.int64]:
        """(E,) number of frames of each episode."""
        ...

    @property
    def cameras(self) -> tuple[str, ...]:
        """Names of the cameras, sorted."""
        ...

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the signals."""
        ...

    def signals(self, episode: int) -> dict[str, NDArray[np.float32]]:
        """Return the signals (T, D) of an episode, by name."""
        ...

    def images(self, episode: int, camera: str, start: int, stop: int) -> NDArray[np.uint8]:
        """Return the images (n, H, W, 3) of frames ``[start, stop)``, sRGB [levels, 0 to 255]."""
        ...

    def task(self, episode: int) -> str:
        """Return the instruction of an episode."""
        ...

    def facts(self) -> dict[str, NDArray[Any]]:
        """Return columns (E,) with one value per episode, such as ``success`` or ``seed``.

        The set of columns depends on the format.
        """
        ...

    @property
    def is_stored(self) -> bool:
        """True if the data are read from a store; then calling :meth:`fetch` in advance saves time."""
        ...

    def fetch(self, blocks: Sequence[FrameBlock], cameras: Sequence[str]) -> None:
        """Fetch the data for images and signals of some blocks from a store, in parallel.

        Args:
            blocks: Blocks of frames that will be read.
            cameras: Names of the cameras whose images will be read.

        Errors are not raised here, but when the data are read.
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
    """Fetch the data for some blocks from a store; see :meth:`Frames.fetch`.

    Args:
        spans: Byte range of the HDF5 file of each block's episode.
        blocks: Blocks of frames that will be read.
        cameras: Names of the cameras whose images will be read.
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
        view: Form of states and actions; the stored form by default. A LeRobot dataset only has its stored form.

    Raises:
        InputError: There is no dataset, it cannot be read, or it does not support the view.
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
                "a LeRobot dataset supports only the view of its export",
                "give the original dataset",
            )
            raise InputError(what, where=f"view of {folder}", instead=instead)
        return LeRobotFrames(folder, open_files=open_files)
    what = "the folder is neither a Nimbus dataset, nor shards, nor a LeRobot dataset"
    raise InputError(what, where=str(folder), instead="give the folder of a run or of an export")
