"""Writer of exports to LeRobot v3.0, whose files contain many episodes at recorded offsets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from nimbus.datagen.datasets.export.features import Tasks, columns_of, dataset_stats, episode_stats, features_of, join
from nimbus.datagen.datasets.export.parquet import (
    BOOL,
    DOUBLE,
    INT,
    TEXT,
    ParquetFile,
    nested,
    write_index,
    write_parquet,
)
from nimbus.datagen.datasets.export.parts import EpisodePart, EpisodeParts
from nimbus.datagen.datasets.export.shards import DATA, EPISODES, FILES_IN_CHUNK, VIDEO, Options, groups, pack, place
from nimbus.datagen.datasets.export.source import Source
from nimbus.datagen.files.codec import to_json
from nimbus.datagen.files.own_files import make_place

NEEDS_PARTS = True


def write(source: Source, parts: EpisodeParts, tree: Path, options: Options) -> None:
    """Write a LeRobot v3.0 dataset into an empty folder.

    Args:
        source: Dataset to export.
        parts: Prepared episodes of the source.
        tree: Folder of the export.
        options: Limits of file sizes.
    """
    most = options.episode_size
    widths = [len(source.state_names), len(source.joint_names), len(source.control_names)]
    row_bytes = 4 * (sum(widths) + sum(max(1, len(names)) for names in source.extra_names.values()) + 1) + 4 * 8
    files = {"data": pack([item.step_count * row_bytes for item in source.items], options.shard_bytes, most)}
    for camera in source.cameras:
        sizes = [parts.video(item, camera).stat().st_size for item in source.items]
        files[camera] = pack(sizes, options.shard_bytes, most)
    tasks = Tasks()
    _write_data(source, parts, tree, files["data"], tasks)
    for camera in source.cameras:
        for number, positions in groups(files[camera]):
            target = make_place(tree, VIDEO.format(video_key=f"observation.images.{camera}", **place(number)))
            join((parts.video(source.items[position], camera) for position in positions), target, fps=source.fps)
    _write_episodes(source, parts, tree, files, tasks, most)
    names = {"task_index": (list(range(len(tasks))), INT), "task": (list(tasks), TEXT)}
    write_index(tree / "meta/tasks.parquet", names, index="task")
    (tree / "meta/stats.json").write_text(to_json(dataset_stats(source, parts, tasks), indent=1) + "\n")
    (tree / "meta/info.json").write_text(to_json(_info(source, tasks, options), indent=1) + "\n")


def _write_data(source: Source, parts: EpisodeParts, tree: Path, numbers: list[int], tasks: Tasks) -> None:
    start = 0
    for number, positions in groups(numbers):
        with ParquetFile(make_place(tree, DATA.format(**place(number)))) as file:
            for position in positions:
                part = parts.read(source.items[position])
                file.write(columns_of(part, source, tasks, start=start))
                start += part.item.step_count


def _write_episodes(
    source: Source, parts: EpisodeParts, tree: Path, files: dict[str, list[int]], tasks: Tasks, most: int
) -> None:
    """Write the tables of episodes; row ``i`` is episode ``i``, because readers find episodes by position."""
    bounds = np.cumsum([0, *(item.step_count for item in source.items)])
    first_frames = {
        camera: {number: int(bounds[positions[0]]) for number, positions in groups(files[camera])}
        for camera in source.cameras
    }
    places = pack([1] * len(source.items), most, most)
    for number, positions in groups(places):
        rows: list[dict[str, tuple[Any, Any]]] = []
        for position in positions:
            part, start, stop = parts.read(source.items[position]), int(bounds[position]), int(bounds[position + 1])
            row = _episode_row(part, start, stop, files["data"][position])
            for camera in source.cameras:
                file = files[camera][position]
                row |= _video_columns(camera, file, (start - first_frames[camera][file], part.item.step_count), source)
            row |= _stats_columns(episode_stats(part, source, tasks, start=start))
            spot = place(number)
            rows.append(row | {f"meta/episodes/{name}": (value, INT) for name, value in spot.items()})
        columns = {name: ([row[name][0] for row in rows], kind) for name, (_, kind) in rows[0].items()}
        write_parquet(make_place(tree, EPISODES.format(**place(number))), columns)


def _episode_row(part: EpisodePart, start: int, stop: int, file: int) -> dict[str, tuple[Any, Any]]:
    item, spot = part.item, place(file)
    return {
        "episode_index": (item.position, INT),
        "tasks": ([part.signals.instruction], nested(TEXT)),
        "length": (stop - start, INT),
        "success": (item.success, BOOL),
        "seed": (item.seed, INT),
        "reason": (item.reason, TEXT),
        "phase": (item.phase, TEXT),
        "episode_id": (item.episode_id, TEXT),
        "index_in_run": (item.index, INT),
        "variant": (item.variant, INT),
        "attempt": (item.attempt, INT),
        "data/chunk_index": (spot["chunk_index"], INT),
        "data/file_index": (spot["file_index"], INT),
        "dataset_from_index": (start, INT),
        "dataset_to_index": (stop, INT),
    }


def _video_columns(camera: str, file: int, frames: tuple[int, int], source: Source) -> dict[str, tuple[Any, Any]]:
    key, spot, (start, count) = f"videos/observation.images.{camera}", place(file), frames
    return {
        f"{key}/chunk_index": (spot["chunk_index"], INT),
        f"{key}/file_index": (spot["file_index"], INT),
        # The quotient of whole numbers does not drift, unlike a sum of durations.
        f"{key}/from_timestamp": (start / source.fps, DOUBLE),
        f"{key}/to_timestamp": ((start + count) / source.fps, DOUBLE),
    }


def _stats_columns(stats: dict[str, dict[str, Any]]) -> dict[str, tuple[Any, Any]]:
    columns: dict[str, tuple[Any, Any]] = {}
    for feature, values in stats.items():
        for name, value in values.items():
            is_image = feature.startswith("observation.images.") and name != "count"
            kind = nested(INT if name == "count" else DOUBLE, 3 if is_image else 1)
            columns[f"stats/{feature}/{name}"] = (value, kind)
    return columns


def _info(source: Source, tasks: Tasks, options: Options) -> dict[str, Any]:
    megabytes = max(1, options.shard_bytes // 10**6)
    return {
        "codebase_version": "v3.0",
        "robot_type": source.robot,
        "total_episodes": len(source.items),
        "total_frames": source.frame_count,
        "total_tasks": len(tasks),
        "chunks_size": FILES_IN_CHUNK,
        "data_files_size_in_mb": megabytes,
        "video_files_size_in_mb": megabytes,
        "fps": source.fps,
        "splits": source.splits,
        "data_path": DATA,
        "video_path": VIDEO if source.cameras else None,
        "features": features_of(source),
    }
