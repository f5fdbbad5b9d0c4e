"""A LeRobot dataset as checks see it, whoever wrote it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.errors import InputError
from nimbus.datagen.qa.checksums import check_sums
from nimbus.datagen.qa.finding import Finding, Unreadable, fail
from nimbus.datagen.qa.tables import column, read_rows, read_table, wordings_of
from nimbus.datagen.qa.view import Clip

_NEEDED = ("fps", "features", "total_episodes", "total_frames", "total_tasks", "data_path")
_LATE = 1e-4
"""[s] by which a frame may miss its time."""


class LeRobotView:
    """See :class:`~nimbus.datagen.qa.view.View`."""

    def __init__(self, folder: Path, info: dict[str, Any], version: str) -> None:
        self._folder = folder
        self._info = info
        self._is_v3 = version == "v3.0"
        self.format = f"lerobot {version}"
        self.fps = float(info["fps"])
        self.cameras = tuple(key for key, told in info["features"].items() if told.get("dtype") == "video")
        self._faults: list[Finding] = []
        self.episodes = self._read(self._read_episodes, [])
        self.wordings: dict[int, Any] = self._read(self._read_wordings, {})
        self.stats: dict[str, dict[str, Any]] = self._read(self._read_stats, {})
        self._table = cache(read_table)

    def structure(self) -> Iterator[Finding]:
        """Files, counts, and whether row ``i`` is episode ``i``."""
        yield from self._faults
        yield from check_sums(self._folder)
        found = [row["episode_index"] for row in self.episodes]
        if found != list(range(len(found))):
            place = next(row for row, number in enumerate(found) if row != number)
            what = f"row {place} is episode {found[place]}: readers look episodes up by their row"
            yield fail("episode_index", "meta/episodes", what)
        counts = {
            "total_episodes": len(self.episodes),
            "total_frames": sum(row["length"] for row in self.episodes),
            "total_tasks": len(self.wordings),
        }
        for name, count in counts.items():
            if self._info[name] != count:
                yield fail("counts", "meta/info.json", f"{name} {self._info[name]}, found {count}")
        start = 0
        for row in self.episodes:
            if self._is_v3 and (row["dataset_from_index"], row["dataset_to_index"]) != (start, start + row["length"]):
                what = f"frames {row['dataset_from_index']} to {row['dataset_to_index']}, expected {start} to "
                yield fail("offsets", f"episode {row['episode_index']}", what + str(start + row["length"]))
            start += row["length"]
        for number, wording in self.wordings.items():
            if not isinstance(wording, str):
                yield fail("tasks", "meta/tasks.parquet", f"task {number} is {wording!r}, not a text")

    def clips(self) -> Iterator[Clip | Finding]:
        """Every episode in the order of its rows."""
        start = 0
        for row in self.episodes:
            try:
                yield self._clip(row, start)
            except Unreadable as error:
                yield fail("files", error.where, error.what)
            except KeyError as error:
                yield fail("files", f"episode {row['episode_index']}", f"the table of episodes has no {error}")
            start += row["length"]

    def _clip(self, row: dict[str, Any], start: int) -> Clip:
        number = row["episode_index"]
        path = self._folder / self._info["data_path"].format(**self._place(row, "data"))
        table = self._table(path)
        mine = column(table, "episode_index") == number
        columns = {
            name: column(table, name)[mine]
            for name, told in self._info["features"].items()
            if told.get("dtype") not in ("video", "image", "string") and name in table.column_names
        }
        images = {key.removeprefix("observation.images."): partial(self._frames, row, key) for key in self.cameras}
        return Clip(number=number, length=row["length"], start=start, columns=columns, images=images)

    def _frames(self, row: dict[str, Any], key: str) -> Iterator[NDArray[np.uint8]]:
        import av

        path = self._folder / self._info["video_path"].format(**self._place(row, f"videos/{key}"), video_key=key)
        begin = row.get(f"videos/{key}/from_timestamp", 0.0)
        end = row.get(f"videos/{key}/to_timestamp", float("inf"))
        try:
            with av.open(str(path)) as container:
                stream = container.streams.video[0]
                if begin and stream.time_base:
                    container.seek(round(begin / stream.time_base), stream=stream)
                for frame in container.decode(stream):
                    time = frame.time or 0.0
                    if begin - _LATE <= time < end - _LATE:
                        yield np.asarray(frame.to_ndarray(format="rgb24"), np.uint8)
                    elif time >= end:
                        return
        except (OSError, ValueError, IndexError) as error:
            raise Unreadable(path.relative_to(self._folder).as_posix(), f"cannot be read: {error}") from error

    def _place(self, row: dict[str, Any], kind: str) -> dict[str, int]:
        if self._is_v3:
            return {name: row[f"{kind}/{name}"] for name in ("chunk_index", "file_index")}
        number = row["episode_index"]
        return {"episode_index": number, "episode_chunk": number // self._info.get("chunks_size", 1000)}

    def _read(self, read: Any, nothing: Any) -> Any:
        try:
            return read()
        except Unreadable as error:
            self._faults.append(fail("files", error.where, error.what))
            return nothing

    def _read_episodes(self) -> list[dict[str, Any]]:
        if not self._is_v3:
            return self._complete(read_rows(self._folder / "meta/episodes.jsonl"))
        paths = sorted((self._folder / "meta/episodes").rglob("*.parquet"))
        if not paths:
            raise Unreadable("meta/episodes", "no table of episodes")
        tables = [read_table(path) for path in paths]
        kept = [[name for name in table.column_names if not name.startswith("stats/")] for table in tables]
        rows = [row for table, names in zip(tables, kept, strict=True) for row in table.select(names).to_pylist()]
        return self._complete(rows)

    def _complete(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        needed = ("episode_index", "length", *(("dataset_from_index", "dataset_to_index") if self._is_v3 else ()))
        for number, row in enumerate(rows):
            if lacking := [name for name in needed if not isinstance(row.get(name), int)]:
                raise Unreadable("meta/episodes", f"row {number} has no {lacking[0]}")
        return rows

    def _read_wordings(self) -> dict[int, Any]:
        if self._is_v3:
            return wordings_of(self._folder / "meta/tasks.parquet")
        return {row["task_index"]: row["task"] for row in read_rows(self._folder / "meta/tasks.jsonl")}

    def _read_stats(self) -> dict[str, Any]:
        path = self._folder / "meta/stats.json"
        return json.loads(path.read_text()) if self._is_v3 and path.exists() else {}


def open_lerobot(folder: Path) -> LeRobotView:
    """The view of a LeRobot dataset.

    Raises:
        InputError: Its description cannot be read, or is of another version.
    """
    path = folder / "meta/info.json"
    try:
        info = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read: {error}", where=str(path)) from None
    version = info.get("codebase_version") if isinstance(info, dict) else None
    if version not in ("v3.0", "v2.1"):
        raise InputError(f"codebase_version {version!r}", where=str(path), instead="v3.0 and v2.1 can be checked")
    if lacking := [name for name in _NEEDED if name not in info]:
        raise InputError(f"no {lacking[0]}", where=str(path), instead="add it")
    return LeRobotView(folder, info, version)
