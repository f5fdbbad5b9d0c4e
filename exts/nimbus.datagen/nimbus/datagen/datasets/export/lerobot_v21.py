"""LeRobot v2.1, one file an episode, with the ``modality.json`` that GR00T reads."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from nimbus.datagen.datasets.export.features import Tasks, columns_of, episode_stats, features_of
from nimbus.datagen.datasets.export.options import Options
from nimbus.datagen.datasets.export.parquet import write_parquet
from nimbus.datagen.datasets.export.parts import EpisodeParts
from nimbus.datagen.datasets.export.shards import DATA_V21, VIDEO_V21
from nimbus.datagen.datasets.export.source import Source
from nimbus.datagen.datasets.export.video import join
from nimbus.datagen.store.episode_file.h264 import PLAIN
from nimbus.datagen.store.json_text import to_json

NEEDS_PARTS = True
_STATS = ("min", "max", "mean", "std", "count")
"""Those that this version knows."""


def write(source: Source, parts: EpisodeParts, tree: Path, options: Options) -> None:
    """Write a dataset into an empty folder.

    Args:
        source: What is exported.
        parts: Its prepared episodes.
        tree: The folder.
        options: How many episodes a folder holds.
    """
    tasks = Tasks()
    meta = _made(tree / "meta/info.json").parent
    start = 0
    with (meta / "episodes.jsonl").open("w") as episodes, (meta / "episodes_stats.jsonl").open("w") as stats:
        for part in parts:
            position, count = part.item.position, part.item.step_count
            place = {"episode_chunk": position // options.episode_size, "episode_index": position}
            write_parquet(_made(tree / DATA_V21.format(**place)), columns_of(part, source, tasks, start=start))
            for camera, video in part.videos.items():
                target = _made(tree / VIDEO_V21.format(video_key=f"observation.images.{camera}", **place))
                if video == part.item.videos.get(camera):  # the dataset's own: a copy, laid out as readers expect
                    join([video], target, fps=source.fps, flags=PLAIN)
                else:
                    _link(video, target)
            found = episode_stats(part, source, tasks, start=start)
            kept = {name: {key: values[key] for key in _STATS} for name, values in found.items()}
            stats.write(to_json({"episode_index": position, "stats": kept}) + "\n")
            item = part.item
            row = {"episode_index": position, "tasks": [part.signals.instruction], "length": count}
            row |= {"success": item.success, "seed": item.seed, "reason": item.reason, "phase": item.phase}
            row |= {"episode_id": item.episode_id, "index_in_run": item.index}
            row |= {"variant": item.variant, "attempt": item.attempt}
            episodes.write(to_json(row) + "\n")
            start += count
    lines = [to_json({"task_index": number, "task": wording}) + "\n" for number, wording in enumerate(tasks)]
    (meta / "tasks.jsonl").write_text("".join(lines))
    (meta / "info.json").write_text(to_json(_info(source, len(tasks), options.episode_size), indent=1) + "\n")
    (meta / "modality.json").write_text(to_json(modality(source), indent=1) + "\n")


def modality(source: Source) -> dict[str, Any]:
    """Which columns are arm and gripper: an action's last entry is the gripper's, and so are the last joints."""
    arm = len(source.action_names) - 1
    joints = {"start": 0, "end": arm}
    fingers = {"start": arm, "end": len(source.joint_names)}
    speed = {"original_key": "observation.velocity"}
    return {
        "state": {
            "arm": joints,
            "gripper": fingers,
            "arm_velocity": joints | speed,
            "gripper_velocity": fingers | speed,
        },
        "action": {"arm": joints, "gripper": {"start": arm, "end": arm + 1}},
        "video": {camera: {"original_key": f"observation.images.{camera}"} for camera in source.cameras},
        "annotation": {"human.task_description": {"original_key": "task_index"}},
    }


def _info(source: Source, task_count: int, chunk_size: int) -> dict[str, Any]:
    count = len(source.items)
    return {
        "codebase_version": "v2.1",
        "robot_type": source.robot,
        "total_episodes": count,
        "total_frames": source.frame_count,
        "total_tasks": task_count,
        "total_videos": count * len(source.cameras),
        "total_chunks": -(-count // chunk_size),
        "chunks_size": chunk_size,
        "fps": source.fps,
        "splits": source.splits,
        "data_path": DATA_V21,
        "video_path": VIDEO_V21 if source.cameras else None,
        "features": features_of(source),
    }


def _link(path: Path, target: Path) -> None:
    """The same file under another name, or a copy where the disk cannot do that."""
    try:
        os.link(path, target)
    except OSError:
        shutil.copyfile(path, target)


def _made(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path
