"""Training reader of Nimbus datasets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.datasets.export.source import ExportItem, Signals, read_signals
from nimbus.datagen.datasets.export.stored_views import with_view
from nimbus.datagen.datasets.training.frames import ACTION, STATE, VELOCITY, KeptSignals, Recent, fetch_blocks
from nimbus.datagen.datasets.training.order import FrameBlock
from nimbus.datagen.datasets.training.stored_source import column, open_stored
from nimbus.datagen.policies.signal_view import SignalView
from nimbus.datagen.store.byte_range import ByteRange
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.datagen.store.remote.range_file import span_of
from nimbus.datagen.store.remote.working_copy import is_remote

FACTS = ("episode_id", "seed", "index", "variant", "success", "reason")
COLUMNS = (STATE, VELOCITY, ACTION)


class StoredFrames:
    """Stored episodes of a Nimbus dataset, in the order of an export.

    Args:
        folder: Folder of the dataset.
        open_files: Number of episodes that stay open.
        view: Form of states and actions; the stored form by default.

    Raises:
        InputError: The dataset does not exist or is empty, or does not support the view.
    """

    def __init__(self, folder: Path, *, open_files: int = 16, view: SignalView | None = None) -> None:
        self._source = with_view(open_stored(folder), view)
        self.columns = (*COLUMNS, *self._source.extra_names)
        self._open: Recent[EpisodeFile] = Recent(open_files)
        self._signals = KeptSignals(self._read)
        self.fps = self._source.fps
        self.cameras = tuple(self._source.cameras)
        self.lengths = column(self._source.items, "step_count").astype(np.int64)

    def signals(self, episode: int) -> dict[str, NDArray[np.float32]]:
        """Return the signals (T, D) of an episode, by name."""
        return by_name(self._signals(episode))

    def images(self, episode: int, camera: str, start: int, stop: int) -> NDArray[np.uint8]:
        """Return the images (n, H, W, 3) of frames ``[start, stop)``, sRGB [levels, 0 to 255]."""
        return self._file(episode).rows(f"observations/images/{camera}", slice(start, stop))

    def task(self, episode: int) -> str:
        """Return the instruction of an episode."""
        return self._signals(episode).instruction

    def facts(self) -> dict[str, NDArray[Any]]:
        """Return columns (E,) with one value per episode, by name."""
        return {name: column(self._source.items, name) for name in (*FACTS, "split")}

    @property
    def is_stored(self) -> bool:
        """True if the dataset is in a store."""
        return is_remote(self._source.folder)

    def fetch(self, blocks: Sequence[FrameBlock], cameras: Sequence[str]) -> None:
        """Fetch the data for some blocks from a store; see :meth:`Frames.fetch`."""
        spans = [_span(self._source.items[block.episode]) for block in blocks]
        fetch_blocks(spans, blocks, cameras, self._file)

    def close(self) -> None:
        """Close all files."""
        self._open.close()

    def _read(self, episode: int) -> Signals:
        return read_signals(self._file(episode), self._source)

    def _file(self, episode: int) -> EpisodeFile:
        return self._open.get(episode, lambda: _open(self._source.items[episode]))


def _open(item: ExportItem) -> EpisodeFile:
    """Open an episode; an episode in a store is read in blocks."""
    span = _span(item)
    return EpisodeFile(item.path if span.is_here else span)


def _span(item: ExportItem) -> ByteRange:
    return span_of(item.path, byte_count=item.byte_count, name=item.episode_id)


def by_name(signals: Signals) -> dict[str, NDArray[np.float32]]:
    """Return the signals of an episode under LeRobot's names.

    Returns:
        (T, S) states [rad or m], (T, J) joint velocities [rad/s or m/s], (T, A) actions [rad or m], and the additional
        features of a view.
    """
    extra = {name: rows.reshape(len(rows), -1).astype(np.float32) for name, rows in signals.extra.items()}
    return {STATE: signals.state, VELOCITY: signals.velocity, ACTION: signals.action} | extra
