"""View of a LeRobot dataset of any origin, for the quality checks."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from nimbus.datagen.datasets.certificates.record import FILE_NAME as CERTIFICATES
from nimbus.datagen.datasets.convert.meta_files import INFO, MOST_FRAMES, read_info, split_range
from nimbus.datagen.datasets.convert.read_v30 import episode_tables, read_episodes
from nimbus.datagen.datasets.export.publication import NAME, read_manifest
from nimbus.datagen.datasets.quality.finding import Unreadable, fail
from nimbus.datagen.datasets.quality.native import check_certificates
from nimbus.datagen.datasets.quality.tables import check_columns, column, numbers, read_rows, read_table, wordings_of
from nimbus.datagen.datasets.quality.video import VideoPictures
from nimbus.datagen.datasets.quality.view import EpisodeView
from nimbus.datagen.errors import Diagnostic, InputError
from nimbus.datagen.files.bounded import read_plain
from nimbus.datagen.store.dataset_paths import DatasetPaths, files_under, fill_template
from nimbus.datagen.store.episode_file.videos import file_hash

_NO_NUMBERS = ("video", "image", "string")
_ROW_KINDS = dict.fromkeys(("frame_index", "episode_index", "index", "task_index"), "whole") | {"timestamp": "time"}
_NEEDED = ("fps", "features", "total_episodes", "total_frames", "total_tasks", "data_path")


def check_sums(folder: Path) -> Iterator[Diagnostic]:
    """Yield a finding for each file that is missing or has changed since an export by Nimbus.

    Other datasets have no recorded checksums, and give no findings.
    """
    if not (folder / NAME).exists():
        return
    try:
        manifest = read_manifest(folder)
    except InputError as error:
        yield fail("checksums", NAME, error.what)
        return
    inside = DatasetPaths(folder)
    for name, (size, digest) in manifest.files.items():
        try:
            path = inside.path(name)
        except InputError as error:
            yield fail("checksums", name, error.what)
            continue
        try:
            is_same = path.stat().st_size == size and file_hash(path) == (size, digest)
        except (OSError, InputError) as error:
            is_missing = isinstance(error, FileNotFoundError)
            yield fail("checksums", name, "the file is missing" if is_missing else "the file cannot be hashed")
            continue
        if not is_same:
            yield fail("checksums", name, "the file has changed since the export")
    if "task" in manifest.origin:  # only exports of Nimbus datasets have certificates
        yield from check_certificates(folder)


class LeRobotView:
    """LeRobot dataset as a :class:`~nimbus.datagen.datasets.quality.view.View`.

    Args:
        folder: Folder of the dataset.
        info: Content of ``meta/info.json``.
        version: LeRobot version, ``v2.1`` or ``v3.0``.
    """

    def __init__(self, folder: Path, info: dict[str, Any], version: str) -> None:
        self._folder = folder
        self._info = info
        self._is_v3 = version == "v3.0"
        self.format = f"lerobot {version}"
        self.fps = float(info["fps"])
        self.cameras = tuple(key for key, told in info["features"].items() if told.get("dtype") == "video")
        self._inside = DatasetPaths(folder)
        self._faults: list[Diagnostic] = []
        self.robot = str(info.get("robot_type") or "")
        self.episodes: list[dict[str, Any]] = self._read(self._read_episodes, [])
        self.episode_count = len(self.episodes)
        self.frame_count = sum(row["length"] for row in self.episodes)
        names = info["features"].get("observation.state", {}).get("names")
        self.joint_names = tuple(map(str, names)) if isinstance(names, list) else ()
        self.wordings: dict[int, Any] = self._read(self._read_wordings, {})
        self.stats: dict[str, dict[str, Any]] = self._read(self._read_stats, {})
        self._stats_of: dict[int, dict[str, Any]] = self._read(self._read_episode_stats, {})
        self.splits = dict(self._read_splits())
        records = {"checksums": NAME, "certificates": CERTIFICATES}
        self.proofs = tuple(name for name, file in records.items() if (folder / file).is_file())
        self._table = lru_cache(maxsize=2)(read_table)

    def structure(self) -> Iterator[Diagnostic]:
        """Yield the findings on files, counts, and the order of episodes."""
        yield from self._faults
        yield from check_sums(self._folder)
        found = [row["episode_index"] for row in self.episodes]
        if found != list(range(len(found))):
            place = next(row for row, number in enumerate(found) if row != number)
            what = f"row {place} is episode {found[place]}, but readers find episodes by their row"
            yield fail("episode_index", "meta/episodes", what)
        counts = {
            "total_episodes": len(self.episodes),
            "total_frames": sum(row["length"] for row in self.episodes),
            "total_tasks": len(self.wordings),
        }
        for name, count in counts.items():
            if self._info[name] != count:
                yield fail("counts", "meta/info.json", f"{name} is {self._info[name]}, found {count}")
        start = 0
        for row in self.episodes:
            if self._is_v3 and (row["dataset_from_index"], row["dataset_to_index"]) != (start, start + row["length"]):
                what = f"the frames are {row['dataset_from_index']} to {row['dataset_to_index']}, expected {start} to "
                yield fail("offsets", f"episode {row['episode_index']}", what + str(start + row["length"]))
            start += row["length"]
        for number, wording in self.wordings.items():
            if not isinstance(wording, str):
                yield fail("tasks", "meta/tasks.parquet", f"task {number} is {wording!r}, expected a string")

    def clips(self) -> Iterator[EpisodeView | Diagnostic]:
        """Yield every episode in the order of the table of episodes, or the reason why it cannot be read."""
        start = 0
        for row in self.episodes:
            try:
                yield self._clip(row, start)
            except Unreadable as error:
                yield fail("files", error.where, error.what)
            except KeyError as error:
                yield fail("files", f"episode {row['episode_index']}", f"the table of episodes has no {error}")
            start += row["length"]

    def _clip(self, row: dict[str, Any], start: int) -> EpisodeView:
        number = row["episode_index"]
        path = self._path(fill_template(self._info["data_path"], **self._place(row, "data")))
        table = self._table(path)
        check_columns(table, _ROW_KINDS)
        mine = column(table, "episode_index") == number
        declared = [name for name, told in self._info["features"].items() if told.get("dtype") not in _NO_NUMBERS]
        if lacking := [name for name in declared if name not in table.column_names]:
            raise Unreadable(
                f"episode {number}", f"the table has no column {lacking[0]}, which meta/info.json declares"
            )
        columns = {name: (numbers if self._is_number(name) else column)(table, name)[mine] for name in declared}
        images = {key.removeprefix("observation.images."): self._video(row, key) for key in self.cameras}
        return EpisodeView(
            number=number,
            length=row["length"],
            start=start,
            columns=columns,
            images=images,
            stats=self._episode_stats(row),
            plan=_plan_of(row),
        )

    def _is_number(self, name: str) -> bool:
        return self._info["features"][name].get("dtype", "").startswith(("float", "int", "uint", "bool"))

    def _video(self, row: dict[str, Any], key: str) -> VideoPictures:
        name = fill_template(self._info["video_path"], **self._place(row, f"videos/{key}"), video_key=key)
        begin = float(row.get(f"videos/{key}/from_timestamp") or 0.0)
        return VideoPictures(
            self._path(name), name, begin=begin, length=row["length"], fps=self.fps, alone=not self._is_v3
        )

    def _path(self, name: str) -> Path:
        try:
            return self._inside.path(name)
        except InputError as error:
            raise Unreadable(name, error.what) from None

    def _episode_stats(self, row: dict[str, Any]) -> dict[str, dict[str, Any]]:
        if not self._is_v3:
            return self._stats_of.get(row["episode_index"], {})
        found: dict[str, dict[str, Any]] = {}
        for name, value in row.items():
            if name.startswith("stats/"):
                feature, _, key = name.removeprefix("stats/").rpartition("/")
                found.setdefault(feature, {})[key] = value
        return found

    def _place(self, row: dict[str, Any], kind: str) -> dict[str, int]:
        if self._is_v3:
            place = {name: row[f"{kind}/{name}"] for name in ("chunk_index", "file_index")}
            if not all(isinstance(number, int) for number in place.values()):
                raise Unreadable("meta/episodes", f"row {row['episode_index']} has no {kind}/file_index")
            return place
        number = row["episode_index"]
        return {"episode_index": number, "episode_chunk": number // int(self._info.get("chunks_size") or 1000)}

    def _read(self, read: Any, nothing: Any) -> Any:
        try:
            return read()
        except Unreadable as error:
            self._faults.append(fail("files", error.where, error.what))
            return nothing

    def _read_episodes(self) -> list[dict[str, Any]]:
        if not self._is_v3:
            return self._complete(read_rows(self._folder / "meta/episodes.jsonl"))
        names = episode_tables(self._folder)
        if not names:
            raise Unreadable("meta/episodes", "there is no table of episodes")
        try:
            tables = [read_episodes(self._folder, name) for name in names]
        except InputError as error:
            raise Unreadable("meta/episodes", error.what) from None
        return self._complete([row for table in tables for row in table.to_pylist()])

    def _complete(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        needed = ("episode_index", "length", *(("dataset_from_index", "dataset_to_index") if self._is_v3 else ()))
        for number, row in enumerate(rows):
            if lacking := [name for name in needed if not isinstance(row.get(name), int)]:
                raise Unreadable("meta/episodes", f"row {number} has no {lacking[0]}")
            if not (0 <= row["length"] <= MOST_FRAMES and 0 <= row["episode_index"] <= MOST_FRAMES):
                what = (
                    f"row {number} is outside the valid range: episode {row['episode_index']}, {row['length']} frames"
                )
                raise Unreadable("meta/episodes", what)
        return rows

    def _read_wordings(self) -> dict[int, Any]:
        if self._is_v3:
            return wordings_of(self._folder / "meta/tasks.parquet")
        rows = read_rows(self._folder / "meta/tasks.jsonl")
        if any(not isinstance(row.get("task_index"), int) or "task" not in row for row in rows):
            raise Unreadable("meta/tasks.jsonl", "a line lacks task_index or task")
        return {row["task_index"]: row["task"] for row in rows}

    def _read_episode_stats(self) -> dict[int, Any]:
        path = self._folder / "meta/episodes_stats.jsonl"
        if self._is_v3 or not path.exists():
            return {}
        rows = read_rows(path)
        if any(not isinstance(row.get("episode_index"), int) or not isinstance(row.get("stats"), dict) for row in rows):
            raise Unreadable("meta/episodes_stats.jsonl", "a line lacks episode_index or stats")
        return {row["episode_index"]: row["stats"] for row in rows}

    def _read_splits(self) -> Iterator[tuple[str, range]]:
        for name, text in (self._info.get("splits") or {}).items():
            if (split := split_range(text)) is not None:
                yield name, split

    def _read_stats(self) -> dict[str, Any]:
        path = self._folder / "meta/stats.json"
        try:
            stats = read_plain(path) if path.exists() else {}
        except InputError as error:
            raise Unreadable("meta/stats.json", error.what) from None
        if not isinstance(stats, dict) or not all(isinstance(told, dict) for told in stats.values()):
            raise Unreadable("meta/stats.json", "the statistics of a feature are not an object")
        return stats


def _plan_of(row: dict[str, Any]) -> str:
    """Return an identifier of the motion of an episode exported by Nimbus; empty for other datasets.

    Visual variants of a plan have the same identifier; failed attempts have separate ones.
    """
    place = row.get("seed"), row.get("index_in_run")
    attempt = f" failed {row.get('attempt')}" if row.get("success") is False else ""
    return "" if None in place else "{} {}".format(*place) + attempt


def open_lerobot(folder: Path) -> LeRobotView:
    """Return the view of a LeRobot dataset.

    Raises:
        InputError: ``meta/info.json`` cannot be read, lacks a field or has another version, or a link in the folder
            leads out of it.
    """
    info = read_info(folder)
    if lacking := [name for name in _NEEDED if name not in info]:
        raise InputError(f"{lacking[0]} is missing", where=str(folder / INFO), instead="add it")
    for _ in files_under(folder):  # raises an error for links out of the folder
        pass
    return LeRobotView(folder, info, info["codebase_version"])
