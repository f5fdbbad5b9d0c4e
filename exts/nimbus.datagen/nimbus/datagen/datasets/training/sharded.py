"""Shards for training: the manifest says where every episode lies, and no other file is looked for."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from nimbus.datagen.datasets.export.source import Signals, Source, read_signals
from nimbus.datagen.datasets.export.tar_shards import FORMAT, MANIFEST, SHARD
from nimbus.datagen.datasets.training.native import COLUMNS, FACTS, by_name
from nimbus.datagen.datasets.training.recent import Recent
from nimbus.datagen.errors import InputError, suggest
from nimbus.datagen.store.byte_range import ByteRange
from nimbus.datagen.store.episode_file.read import EpisodeFile

_KEPT = 256
"""Episodes whose signals stay in memory."""


class ShardManifest:
    """The table of a folder of shards: a row an episode.

    Args:
        folder: That holds ``manifest.parquet``.
        where: Rows to keep, as filters of ``pyarrow.parquet``: ``[("success", "=", True), ("length", ">", 50)]``.

    Raises:
        InputError: It cannot be read, or is of another format.
    """

    def __init__(self, folder: Path | str, *, where: list[tuple[str, str, Any]] | None = None) -> None:
        self.folder = folder = Path(folder)
        path = folder / MANIFEST
        try:
            names = pq.read_schema(path).names
            if lost := next((name for name, *_ in where or () if name not in names), None):
                raise InputError(f"no column '{lost}'", where=f"where of {path}", instead=suggest(lost, names))
            self.table: Any = pq.read_table(path, filters=where)
            told = json.loads((self.table.schema.metadata or {})[b"nimbus"])
        except (OSError, pa.ArrowException, KeyError, ValueError) as error:
            what = f"not a manifest of shards: {error}".split("\n")[0]
            raise InputError(what, where=str(path), instead="restore it from a copy, or export again") from None
        if told.get("format") != FORMAT:
            what = f"format {told.get('format')}, this Nimbus reads {FORMAT}"
            raise InputError(what, where=str(path), instead="use the Nimbus that wrote it")
        self.source: dict[str, Any] = told["source"]

    def __len__(self) -> int:
        return self.table.num_rows

    def column(self, name: str) -> NDArray[Any]:
        """Read a column (R,), a value for each row of the table [unit of the column]."""
        return self.table.column(name).to_numpy()

    def span(self, row: int, part: str) -> ByteRange:
        """Where a file of an episode lies; ``part`` is ``hdf5`` or ``video/<camera>``."""
        number, name = self.table.column("shard")[row].as_py(), self.table.column("episode_id")[row].as_py()
        offset, size = (self.table.column(f"{part}/{key}")[row].as_py() for key in ("offset", "bytes"))
        path = self.folder / SHARD.format(number=number)
        if not path.is_file():
            raise InputError("no such file", where=str(path), instead="restore it from a copy, or export again")
        return ByteRange(path=path, offset=offset, byte_count=size, name=f"{name}/{part}")

    @property
    def videos(self) -> tuple[str, ...]:
        """Cameras whose images are stored as video, in episodes at least."""
        names = (name.split("/") for name in self.table.column_names)
        return tuple(parts[1] for parts in names if parts[0] == "video" and parts[-1] == "offset")

    def videos_of(self, row: int) -> tuple[str, ...]:
        """Cameras with a video in a row: a failed attempt has none."""
        return tuple(name for name in self.videos if self.table.column(f"video/{name}/offset")[row].is_valid)

    def open(self, row: int) -> EpisodeFile:
        """An episode, where it lies."""
        videos = {camera: self.span(row, f"video/{camera}") for camera in self.videos_of(row)}
        return EpisodeFile(self.span(row, "hdf5"), videos=videos)


class ShardFrames:
    """The episodes of a folder of shards, in the manifest's order.

    Args:
        folder: That holds ``manifest.parquet``.
        open_files: Episodes that stay open at once.
        where: Rows to keep; see :class:`ShardManifest`.

    Raises:
        InputError: The manifest cannot be read.
    """

    columns = COLUMNS

    def __init__(self, folder: Path, *, open_files: int = 16, where: list[tuple[str, str, Any]] | None = None) -> None:
        self.manifest = ShardManifest(folder, where=where)
        told = self.manifest.source
        cameras = {name: tuple(size) for name, size in told["cameras"].items()}
        names = {name: tuple(told[name]) for name in ("joint_names", "action_names")}
        values = {name: told[name] for name in ("task", "robot", "fps")}
        self._source = Source(folder=folder, cameras=cameras, items=(), **names, **values)
        self._open: Recent[EpisodeFile] = Recent(open_files)
        self._signals = lru_cache(_KEPT)(self._read)
        self.fps = self._source.fps
        self.cameras = tuple(self._source.cameras)
        self.lengths = self.manifest.column("length").astype(np.int64)

    def signals(self, episode: int) -> dict[str, NDArray[np.float32]]:
        """(T, D) rows by name."""
        return by_name(self._signals(episode))

    def images(self, episode: int, camera: str, start: int, stop: int) -> NDArray[np.uint8]:
        """(n, H, W, 3) sRGB images of frames ``[start, stop)``."""
        return self._file(episode).rows(f"observations/images/{camera}", slice(start, stop))

    def task(self, episode: int) -> str:
        """What the robot is told."""
        return self.manifest.table.column("instruction")[episode].as_py()

    def facts(self) -> dict[str, NDArray[Any]]:
        """Read columns (R,) by name, a value for each episode [no unit]."""
        return {name: self.manifest.column(name) for name in FACTS}

    def close(self) -> None:
        """Close all files."""
        self._open.close()

    def _read(self, episode: int) -> Signals:
        return read_signals(self._file(episode), self._source)

    def _file(self, episode: int) -> EpisodeFile:
        return self._open.get(episode, lambda: self.manifest.open(episode))
