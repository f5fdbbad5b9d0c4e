"""Side tables of an export: keypoints and tool poses beside a LeRobot dataset, as a Parquet file per episode.

Keypoints are not features of the dataset, because their number differs between episodes, and because a policy treats
every observation as an input.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from nimbus.datagen.datasets.export.parquet import BYTE, FLOAT, INT, array_of, write_parquet
from nimbus.datagen.datasets.export.source import ExportItem
from nimbus.datagen.files.own_files import make_place
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.datagen.store.episode_file.schema import ANNOTATION_GROUPS, CAMERA_FIELDS

SIDE_TABLE = "side/annotations/episode_{episode_index:06d}.parquet"
_GROUPS = ANNOTATION_GROUPS["keypoints"]


def has_table(episode: EpisodeFile) -> bool:
    """Return True if an episode has keypoints or tool poses."""
    return bool(episode.end_effectors) or any(_cameras(episode))


def write_side_table(episode: EpisodeFile, item: ExportItem, tree: Path) -> dict[str, Any]:
    """Write the table of an episode, and return the names of its keypoints and arms.

    Args:
        episode: Stored episode.
        item: Its item in the export.
        tree: Folder of the export.
    """
    target = make_place(tree, SIDE_TABLE.format(episode_index=item.position))
    frames = np.arange(item.step_count)
    columns: dict[str, tuple[Any, Any]] = {"frame_index": (frames, INT)}
    names: dict[str, Any] = {}
    for camera in _cameras(episode):
        for group in _GROUPS:
            values = episode.array(f"observations/{group}/{camera}")
            kind = BYTE if group == "keypoint_visibility" else FLOAT
            columns[f"{group}.{camera}"] = (values, array_of(kind, values.shape[1:]))
    if (labels := episode.labels) and labels.keypoints:
        names["keypoint_names"] = labels.keypoints.names
    if tools := episode.end_effectors:
        poses = np.concatenate([tools.positions, tools.wxyz], axis=2).astype(np.float32)
        columns["end_effector_pose"] = (poses, array_of(FLOAT, poses.shape[1:]))
        names["end_effectors"] = tools.names
    write_parquet(target, columns)
    return names


def describe_side_table() -> dict[str, Any]:
    """Return the description of the tables for ``side/info.json``."""
    units = {
        group: {"units": CAMERA_FIELDS[group].units, "contents": CAMERA_FIELDS[group].description} for group in _GROUPS
    }
    pose = {
        "units": "m",
        "contents": "position and orientation (quaternion wxyz) of each arm's tool frame in the world",
    }
    return {
        "path": SIDE_TABLE,
        "columns": {f"{name}.<camera>": about for name, about in units.items()} | {"end_effector_pose": pose},
    }


def _cameras(episode: EpisodeFile) -> Iterator[str]:
    return (camera for camera in episode.cameras if "keypoints" in episode.modalities(camera))
