"""Reader of LeRobot v2.1, which has one table per episode, and one video per episode and camera."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nimbus.datagen.datasets.convert.lerobot_set import LeRobotEpisode, LeRobotSet, VideoClip
from nimbus.datagen.datasets.convert.meta_files import INFO, check_numbers, check_tasks, json_rows, usable_stats
from nimbus.datagen.store.dataset_paths import DatasetPaths, fill_template, resolve_inside

_EPISODES, _STATS, _TASKS = "meta/episodes.jsonl", "meta/episodes_stats.jsonl", "meta/tasks.jsonl"


def read(folder: Path, info: dict[str, Any]) -> LeRobotSet:
    """Read the LeRobot v2.1 dataset in a folder.

    Raises:
        InputError: The tables are incomplete, damaged or inconsistent.
    """
    rows = json_rows(folder, _EPISODES, {"episode_index": int, "length": int, "tasks": list})
    rows.sort(key=lambda row: row["episode_index"])
    check_numbers([row["episode_index"] for row in rows], folder / _EPISODES)
    told = json_rows(folder, _TASKS, {"task_index": int, "task": str})
    wordings = {row["task_index"]: row["task"] for row in told}
    check_tasks((text for row in rows for text in row["tasks"]), wordings, folder / _TASKS)
    stats: dict[int, Any] = {}
    if resolve_inside(folder, _STATS).exists():
        needed = {"episode_index": int, "stats": dict}
        stats = {row["episode_index"]: row["stats"] for row in json_rows(folder, _STATS, needed)}
    videos = [name for name, feature in info["features"].items() if feature.get("dtype") == "video"]
    inside = DatasetPaths(folder)
    items = [_item(inside, info, row, videos, stats.get(row["episode_index"], {})) for row in rows]
    named = {path for item in items for path in (item.rows, *(clip.path for clip in item.clips.values()))}
    own = {INFO, _EPISODES, _STATS, _TASKS, "meta/stats.json"}
    own |= {path.relative_to(folder).as_posix() for path in named}
    return LeRobotSet(
        folder=folder,
        version="v2.1",
        info=info,
        items=tuple(items),
        wordings=wordings,
        own_files=frozenset(own),
    )


def _item(
    inside: DatasetPaths, info: dict[str, Any], row: dict[str, Any], videos: list[str], stats: dict[str, Any]
) -> LeRobotEpisode:
    number = row["episode_index"]
    place = {"episode_index": number, "episode_chunk": number // int(info.get("chunks_size") or 1000)}
    clips = {
        name: VideoClip(path=inside.path(fill_template(info["video_path"], video_key=name, **place))) for name in videos
    }
    return LeRobotEpisode(
        number=number,
        length=row["length"],
        tasks=tuple(map(str, row["tasks"])),
        rows=inside.path(fill_template(info["data_path"], **place)),
        clips=clips,
        extra={name: value for name, value in row.items() if name not in ("episode_index", "length", "tasks")},
        image_stats={name: found for name in videos if (found := usable_stats(stats.get(name)))},
    )
