"""Writer of InternData-N1's ``vln_n1`` format, which NavDP's training code reads.

Each folder ``<task>_<camera>/<scene>/`` contains ``data``, ``meta`` and ``videos``. The axes of the base are right,
forward and up; cameras have OpenGL axes; depth is in tenths of a millimeter.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from nimbus.datagen.arrays import AnyArray, Float32Array, FloatArray
from nimbus.datagen.datasets.export.driven_path import (
    GL_T_CV,
    DrivenEpisode,
    check_navigation,
    file_name,
    read_driven,
)
from nimbus.datagen.datasets.export.parquet import DOUBLE, FLOAT, INT, nested, write_parquet
from nimbus.datagen.datasets.export.parts import EpisodeParts
from nimbus.datagen.datasets.export.shards import Options
from nimbus.datagen.datasets.export.source import Source
from nimbus.datagen.episode.observation import CameraFrames
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.codec import to_json
from nimbus.datagen.geometry import transforms
from nimbus.datagen.store.episode_file.read import EpisodeFile

NEEDS_PARTS = False
NAME = "vln-n1"
DEPTH_UNITS = 10_000
"""Stored depth value per meter."""
_DEEPEST = 65_535
"""Largest stored depth value; larger depths are clipped."""
_BLOCK = 32
_JPEG_QUALITY = 92
_VOXEL = 0.05
"""Side of the voxels from which the point cloud is built [m]."""
_LOWEST, _HIGHEST = 0.1, 1.5
"""Range of heights above the floor in which a point is an obstacle [m]."""
_POINT_STEP = 4
"""Stride between used pixels of a depth image, and between used frames."""
_FARTHEST = 5.0
"""Largest depth of a point [m]."""
OBSTACLE, PATH = (0, 0, 128), (0, 0, 0)
"""Colors by which the training code distinguishes points: (0, 0, 0.5) and black."""
_BASE_T_BODY = np.array([[0.0, -1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
"""Transform from the body's axes (x forward, y left) to those of the format (x right, y forward)."""


def write(source: Source, parts: EpisodeParts, tree: Path, options: Options) -> None:
    """Write a dataset into an empty folder.

    Args:
        source: Dataset to export.
        parts: Unused: images are decoded and written as JPEG and PNG.
        tree: Folder of the export.
        options: Unused: each scene is a separate dataset.

    Raises:
        InputError: The source is a manipulation dataset or has no camera with depth, or an episode is damaged.
    """
    check_navigation(source, NAME)
    if not source.cameras:
        raise InputError("the dataset has no camera", where=f"--to {NAME}", instead="add cameras with rgb and depth")
    by_scene: dict[str, list[DrivenEpisode]] = {}
    for item in source.stored:
        with EpisodeFile(item.path) as episode:
            driven = read_driven(item, episode, source)
        by_scene.setdefault(driven.scene, []).append(driven)
    for camera in source.cameras:
        for scene, episodes in by_scene.items():
            _write_scene(tree / file_name(f"{source.task}_{camera}") / file_name(scene), episodes, camera, source)


def _write_scene(folder: Path, episodes: list[DrivenEpisode], camera: str, source: Source) -> None:
    meta, data, rgb, depth = (
        folder / name
        for name in (
            "meta",
            "data/chunk-000",
            "videos/chunk-000/observation.images.rgb",
            "videos/chunk-000/observation.images.depth",
        )
    )
    for place in (meta, data, rgb, depth):
        place.mkdir(parents=True)
    tasks: dict[str, int] = {}
    rows, stats, obstacles, start = [], [], np.empty((0, 3), np.int64), 0
    for number, one in enumerate(episodes):
        poses, matrix, mount = [], np.eye(3), np.eye(4)
        with EpisodeFile(one.item.path) as episode:
            if "depth" not in episode.modalities(camera):
                what, instead = f"camera '{camera}' has no depth", "add the modality depth to the cameras of the task"
                raise InputError(what, where=f"--to {NAME}", instead=instead)
            for first in range(0, one.item.step_count, _BLOCK):
                frames = episode.frames(camera, first, min(first + _BLOCK, one.item.step_count))
                _write_pictures(frames, rgb, depth, number, first)
                poses.append(frames.world_T_camera @ GL_T_CV)
                matrix = frames.intrinsics
                seen = _obstacles(frames, one.positions[first : first + len(frames.rgb)])
                obstacles = np.unique(np.concatenate([obstacles, seen]), axis=0)
        mount = _BASE_T_BODY @ np.linalg.inv(_body_pose(one, 0)) @ poses[0][0]
        count, task = one.item.step_count, tasks.setdefault(one.instruction, len(tasks))
        columns = _columns(one, np.concatenate(poses), matrix, mount, number=number, start=start, task=task)
        columns["timestamp"] = np.arange(count, dtype=np.float32) / source.fps, FLOAT
        write_parquet(data / f"episode_{number:06d}.parquet", columns)
        rows.append({"episode_index": number, "tasks": [one.instruction], "length": count})
        rows[-1] |= {"episode_id": one.item.episode_id, "goal": one.goal.tolist(), "geodesic": one.geodesic}
        image_index = {"min": start, "max": start + count - 1}
        stats.append({"episode_index": number, "image_index": image_index, "stats": _stats(np.concatenate(poses))})
        start += count
    paths = np.concatenate([one.positions for one in episodes])
    _write_cloud(meta / "pointcloud.ply", (obstacles.astype(float) + 0.5) * _VOXEL, paths)
    _write_lines(meta / "episodes.jsonl", rows)
    _write_lines(meta / "episodes_stats.jsonl", stats)
    _write_lines(meta / "tasks.jsonl", [{"task_index": number, "task": text} for text, number in tasks.items()])
    info = _info(source, camera, len(episodes), start, len(tasks))
    (meta / "info.json").write_text(to_json(info, indent=1) + "\n")


def _write_pictures(frames: CameraFrames, rgb: Path, depth: Path, number: int, first: int) -> None:
    """Write a block of images as JPEG and PNG files, whose names sort in the order of the frames."""
    for row in range(len(frames.rgb)):
        name = f"episode_{number:06d}_{first + row:06d}"
        Image.fromarray(frames.rgb[row]).save(rgb / f"{name}.jpg", quality=_JPEG_QUALITY)
        units = np.minimum(np.round(frames.depth[row].astype(float) * DEPTH_UNITS), _DEEPEST).astype(np.uint16)
        Image.fromarray(units).save(depth / f"{name}.png")


def _columns(
    one: DrivenEpisode, poses: FloatArray, matrix: FloatArray, mount: FloatArray, *, number: int, start: int, task: int
) -> dict[str, tuple[Any, Any]]:
    count = len(poses)
    path = one.positions.tolist()
    black = [[0.0, 0.0, 0.0]] * len(path)
    return {
        "observation.camera_intrinsic": ([matrix.tolist()] * count, nested(FLOAT, 2)),
        "observation.camera_extrinsic": ([mount.tolist()] * count, nested(FLOAT, 2)),
        "action": (poses.astype(np.float32).tolist(), nested(FLOAT, 2)),
        "observation.path_points": ([path] + [[]] * (count - 1), nested(DOUBLE, 2)),
        "observation.path_colors": ([black] + [[]] * (count - 1), nested(FLOAT, 2)),
        "frame_index": (np.arange(count), INT),
        "episode_index": (np.full(count, number), INT),
        "index": (start + np.arange(count), INT),
        "task_index": (np.full(count, task), INT),
    }


def _body_pose(one: DrivenEpisode, row: int) -> FloatArray:
    half = 0.5 * float(one.yaws[row])
    return transforms.make_transform(one.positions[row], (float(np.cos(half)), 0.0, 0.0, float(np.sin(half))))


def _obstacles(frames: CameraFrames, floor: FloatArray) -> NDArray[np.int64]:
    """Return the indices (n, 3) of the voxels with obstacles in some of the frames.

    Args:
        frames: Frames of one camera.
        floor: (T, 3) position of the body on the floor in each frame [m].
    """
    matrix, found = frames.intrinsics, []
    for row in range(0, len(frames.depth), _POINT_STEP):
        depth: Float32Array = frames.depth[row][::_POINT_STEP, ::_POINT_STEP]
        y, x = np.mgrid[0 : depth.shape[0], 0 : depth.shape[1]] * _POINT_STEP + 0.5
        rays = np.stack([(x - matrix[0, 2]) / matrix[0, 0], (y - matrix[1, 2]) / matrix[1, 1], np.ones_like(x)], -1)
        seen = (depth > 0.1) & (depth < _FARTHEST)
        pose = frames.world_T_camera[row]
        points = (rays[seen] * depth[seen][:, None]) @ pose[:3, :3].T + pose[:3, 3]
        height = points[:, 2] - floor[row, 2]
        points = points[(height > _LOWEST) & (height < _HIGHEST)]
        found.append(np.unique(np.floor(points / _VOXEL).astype(np.int64), axis=0))
    return np.concatenate(found)


def _write_cloud(path: Path, obstacles: AnyArray, paths: FloatArray) -> None:
    points = np.concatenate([obstacles, paths])
    colors = np.repeat(np.array([OBSTACLE, PATH], np.uint8), [len(obstacles), len(paths)], axis=0)
    fields = [(axis, "<f4") for axis in "xyz"] + [(name, "u1") for name in ("red", "green", "blue")]
    table = np.empty(len(points), dtype=fields)
    for column, axis in enumerate("xyz"):
        table[axis] = points[:, column]
    for column, name in enumerate(("red", "green", "blue")):
        table[name] = colors[:, column]
    lines = ["ply", "format binary_little_endian 1.0", f"element vertex {len(points)}"]
    lines += [f"property float {axis}" for axis in "xyz"]
    lines += [f"property uchar {name}" for name in ("red", "green", "blue")] + ["end_header", ""]
    path.write_bytes("\n".join(lines).encode() + table.tobytes())


def _stats(poses: FloatArray) -> dict[str, Any]:
    return {"action": {"min": poses.min(axis=0).tolist(), "max": poses.max(axis=0).tolist(), "count": [len(poses)]}}


def _write_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(to_json(row) + "\n" for row in rows))


def _info(source: Source, camera: str, episodes: int, frames: int, tasks: int) -> dict[str, Any]:
    width, height = source.cameras[camera]
    matrix = {"dtype": "float32", "shape": [4, 4]}
    return {
        "codebase_version": "v2.1",
        "robot_type": source.robot,
        "total_episodes": episodes,
        "total_frames": frames,
        "total_tasks": tasks,
        "total_videos": 0,
        "total_chunks": 1,
        "chunks_size": episodes,
        "fps": source.fps,
        "splits": {"train": f"0:{episodes}"},
        "data_path": "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet",
        "image_path": "videos/chunk-000/{image_key}/episode_{episode_index:06d}_{frame_index:06d}",
        "depth_scale": DEPTH_UNITS,
        "features": {
            "observation.images.rgb": {"dtype": "image", "shape": [height, width, 3]},
            "observation.images.depth": {"dtype": "image", "shape": [height, width, 1]},
            "observation.camera_intrinsic": {"dtype": "float32", "shape": [3, 3]},
            "observation.camera_extrinsic": matrix,
            "action": matrix,
        },
    }
