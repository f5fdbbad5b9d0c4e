"""Reader of LeRobot v3.0, whose files contain many episodes at recorded offsets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nimbus.datagen.datasets.convert.lerobot_set import LeRobotEpisode, LeRobotSet, VideoClip
from nimbus.datagen.datasets.convert.meta_files import INFO, RESTORE, check_numbers, check_tasks, usable_stats
from nimbus.datagen.datasets.quality.finding import Unreadable
from nimbus.datagen.datasets.quality.tables import check_columns, read_table, wordings_of
from nimbus.datagen.errors import InputError
from nimbus.datagen.store.dataset_paths import DatasetPaths, fill_template, resolve_inside

_TASKS = "meta/tasks.parquet"
_OWN_COLUMNS = ("episode_index", "length", "tasks", "dataset_from_index", "dataset_to_index")
_KINDS = dict.fromkeys(_OWN_COLUMNS, "whole") | {"tasks": "texts"}
_ENDS = {"/chunk_index": "whole", "/file_index": "whole", "/from_timestamp": "time", "/to_timestamp": "time"}
_OWN_GROUPS = ("data/", "videos/", "stats/", "meta/")


def read(folder: Path, info: dict[str, Any]) -> LeRobotSet:
    """Read the LeRobot v3.0 dataset in a folder.

    Raises:
        InputError: The tables are incomplete, damaged or inconsistent.
    """
    names = episode_tables(folder)
    rows = [row for name in names for row in read_episodes(folder, name).to_pylist()]
    where = folder / "meta/episodes"
    for number, row in enumerate(rows):
        if lacking := [key for key in _OWN_COLUMNS if row.get(key) is None]:
            raise InputError(f"row {number} has no {lacking[0]}", where=str(where), instead=RESTORE)
    check_numbers([row["episode_index"] for row in rows], where)
    wordings = _wordings(folder)
    check_tasks((text for row in rows for text in row["tasks"]), wordings, folder / _TASKS)
    videos = [name for name, feature in info["features"].items() if feature.get("dtype") == "video"]
    inside = DatasetPaths(folder)
    items = [_item(inside, info, row, videos) for row in rows]
    named = {path for item in items for path in (item.rows, *(clip.path for clip in item.clips.values()))}
    own = {INFO, _TASKS, "meta/stats.json", *names, *(path.relative_to(folder).as_posix() for path in named)}
    return LeRobotSet(
        folder=folder, version="v3.0", info=info, items=tuple(items), wordings=wordings, own_files=frozenset(own)
    )


def _item(inside: DatasetPaths, info: dict[str, Any], row: dict[str, Any], videos: list[str]) -> LeRobotEpisode:
    number = row["episode_index"]

    def place(kind: str) -> dict[str, int]:
        try:
            return {name: int(row[f"{kind}/{name}"]) for name in ("chunk_index", "file_index")}
        except (KeyError, TypeError):
            what = f"episode {number} lacks {kind}/chunk_index or {kind}/file_index"
            raise InputError(what, where=str(inside.root / "meta/episodes"), instead=RESTORE) from None

    def clip(name: str) -> VideoClip:
        path = inside.path(fill_template(info["video_path"], video_key=name, **place(f"videos/{name}")))
        return VideoClip(path=path, begin=float(row.get(f"videos/{name}/from_timestamp") or 0.0), is_whole=False)

    return LeRobotEpisode(
        number=number,
        length=row["length"],
        tasks=tuple(map(str, row["tasks"])),
        rows=inside.path(fill_template(info["data_path"], **place("data"))),
        clips={name: clip(name) for name in videos},
        extra={
            name: value for name, value in row.items() if name not in _OWN_COLUMNS and not name.startswith(_OWN_GROUPS)
        },
        image_stats={name: stats for name in videos if (stats := usable_stats(_stats(row, name)))},
    )


def _stats(row: dict[str, Any], feature: str) -> dict[str, Any]:
    mark = f"stats/{feature}/"
    return {name.removeprefix(mark): value for name, value in row.items() if name.startswith(mark)}


def episode_tables(folder: Path) -> list[str]:
    """Return the names of the tables of episodes, sorted."""
    return sorted(path.relative_to(folder).as_posix() for path in (folder / "meta/episodes").rglob("*.parquet"))


def read_episodes(folder: Path, name: str) -> Any:
    """Read a table of episodes, and check the types of its columns.

    Raises:
        InputError: The table cannot be read, or a column has another type.
    """
    try:
        table = read_table(resolve_inside(folder, name))
        check_columns(table, {column: kind for column in table.column_names if (kind := _kind(column))})
        return table
    except Unreadable as error:
        raise InputError(error.what, where=str(folder / name), instead=RESTORE) from None


def _kind(column: str) -> str:
    """Return the required type of a column; empty if any type is allowed."""
    if column in _KINDS or column.startswith("stats/"):
        return _KINDS.get(column, "")
    return next((kind for end, kind in _ENDS.items() if column.endswith(end)), "")


def _wordings(folder: Path) -> dict[int, str]:
    try:
        found = wordings_of(resolve_inside(folder, _TASKS))
    except Unreadable as error:
        raise InputError(error.what, where=str(folder / _TASKS), instead=RESTORE) from None
    for number, text in found.items():
        if not isinstance(text, str):
            what = f"task {number} is {text!r}, expected a string: the index of the table must contain strings"
            raise InputError(what, where=str(folder / _TASKS), instead="write it with pandas, with the texts as index")
    return found
