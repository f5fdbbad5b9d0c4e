"""Training reader of LeRobot v3.0 datasets of any origin."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nimbus.datagen.datasets.convert.meta_files import INFO, read_info
from nimbus.datagen.datasets.convert.read_v30 import episode_tables, read_episodes
from nimbus.datagen.datasets.quality.finding import Unreadable
from nimbus.datagen.datasets.quality.tables import numbers, read_table
from nimbus.datagen.datasets.training.frames import IMAGES, Recent
from nimbus.datagen.datasets.training.order import FrameBlock
from nimbus.datagen.errors import InputError
from nimbus.datagen.store.dataset_paths import DatasetPaths, fill_template
from nimbus.datagen.store.episode_file.decode import VideoReader

_MEND = "run 'nimbus qa' for details"
_AUTOMATIC = ("timestamp", "frame_index", "episode_index", "index", "task_index")
_KEPT = 4
"""Number of tables kept in memory."""


class LeRobotFrames:
    """Episodes of a LeRobot v3.0 dataset, in order.

    Args:
        folder: Folder that contains ``meta/``.
        open_files: Number of videos that stay open.

    Raises:
        InputError: The dataset has another version, or a table cannot be read.
    """

    def __init__(self, folder: Path, *, open_files: int = 16) -> None:
        self._inside = DatasetPaths(folder)
        self._folder = folder
        self._arrays: dict[str, NDArray[Any]] = {}
        self._info = self._read_info()
        features: dict[str, Any] = self._info["features"]
        self._videos = {name.removeprefix(IMAGES): name for name, f in features.items() if f.get("dtype") == "video"}
        self.fps = int(self._info["fps"])
        self.cameras = tuple(sorted(self._videos))
        self.columns = tuple(
            name
            for name, f in features.items()
            if f.get("dtype", "").startswith(("float", "int")) and name not in _AUTOMATIC
        )
        tables = [read_episodes(folder, name) for name in episode_tables(folder)]
        if not tables:
            raise InputError("there is no table of episodes", where=str(folder / "meta/episodes"), instead=_MEND)
        wanted = [name for name in tables[0].column_names if not name.startswith("stats/")]
        try:
            self._episodes: Any = pa.concat_tables([table.select(wanted) for table in tables])
        except (KeyError, pa.ArrowException):
            what = "the tables of episodes have different columns"
            raise InputError(what, where=str(folder), instead=_MEND) from None
        self.lengths = self._column("length").astype(np.int64)
        if not np.array_equal(self._column("episode_index"), np.arange(len(self.lengths))):
            what = "row i of the table of episodes is not episode i"
            raise InputError(what, where=str(folder), instead=_MEND)
        self._first_rows = self._first_rows_of_files()
        self._open: Recent[VideoReader] = Recent(open_files)
        self._table = lru_cache(_KEPT)(self._read_table)

    def signals(self, episode: int) -> dict[str, NDArray[np.float32]]:
        """Return the signals (T, D) of an episode, by name."""
        file = self._place("data", episode)
        first = int(self._column("dataset_from_index")[episode]) - self._first_rows[file]
        length = int(self.lengths[episode])
        found = {name: rows[first : first + length] for name, rows in self._table(file).items()}
        if any(len(rows) != length for rows in found.values()):
            what = f"the table has too few rows for episode {episode}"
            raise InputError(what, where=str(self._folder / self._data_file(file)), instead=_MEND)
        return found

    def images(self, episode: int, camera: str, start: int, stop: int) -> NDArray[np.uint8]:
        """Return the images (n, H, W, 3) of frames ``[start, stop)``, sRGB [levels, 0 to 255]."""
        key = self._videos[camera]
        chunk, file = self._place(f"videos/{key}", episode)
        first = round(float(self._column(f"videos/{key}/from_timestamp")[episode]) * self.fps)
        name = fill_template(self._info["video_path"], video_key=key, chunk_index=chunk, file_index=file)
        reader = self._open.get(name, lambda: VideoReader(self._inside.path(name), fps=self.fps))
        return reader.read(first + start, first + stop)

    def task(self, episode: int) -> str:
        """Return the instruction of an episode."""
        return next(iter(self._column("tasks")[episode]), "")

    def facts(self) -> dict[str, NDArray[Any]]:
        """Return columns (E,) with one value per episode, by name."""
        names = [name for name in self._episodes.column_names if "/" not in name and name != "tasks"]
        return {name: self._column(name) for name in names}

    @property
    def is_stored(self) -> bool:
        """False: a LeRobot dataset in a store is fetched as a whole when it is opened."""
        return False

    def fetch(self, blocks: Sequence[FrameBlock], cameras: Sequence[str]) -> None:
        """Do nothing, because all files are local."""

    def close(self) -> None:
        """Close all files."""
        self._open.close()

    def _read_info(self) -> dict[str, Any]:
        info = read_info(self._folder)
        if (version := info["codebase_version"]) != "v3.0":
            what, instead = f"the dataset is LeRobot {version}, expected v3.0", "convert it with 'nimbus convert'"
            raise InputError(what, where=str(self._folder / INFO), instead=instead)
        return info

    def _column(self, name: str) -> NDArray[Any]:
        if name not in self._arrays:
            if name not in self._episodes.column_names:
                raise InputError(
                    f"the table of episodes has no column '{name}'", where=str(self._folder), instead=_MEND
                )
            self._arrays[name] = self._episodes.column(name).to_numpy()
        return self._arrays[name]

    def _place(self, kind: str, episode: int) -> tuple[int, int]:
        return tuple(int(self._column(f"{kind}/{name}")[episode]) for name in ("chunk_index", "file_index"))  # pyright: ignore[reportReturnType]

    def _first_rows_of_files(self) -> dict[tuple[int, int], int]:
        first: dict[tuple[int, int], int] = {}
        for episode, start in enumerate(self._column("dataset_from_index")):
            first.setdefault(self._place("data", episode), int(start))
        return first

    def _data_file(self, file: tuple[int, int]) -> str:
        return fill_template(self._info["data_path"], chunk_index=file[0], file_index=file[1])

    def _read_table(self, file: tuple[int, int]) -> dict[str, NDArray[np.float32]]:
        path = self._inside.path(self._data_file(file))
        try:
            table = read_table(path, columns=self.columns)
            rows = {name: numbers(table, name) for name in self.columns}
        except Unreadable as error:
            raise InputError(error.what, where=str(path), instead=_MEND) from None
        return {name: values.reshape(len(values), -1).astype(np.float32, copy=False) for name, values in rows.items()}
