"""LeRobot v2.1 datasets from other writers: default encoders with reordered frames, extra files, no checksums."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import av
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

FPS = 15
CAMERAS = ("observation.images.front", "observation.images.side.wrist")
TEXTS = ("stack the cups", "open the drawer")


def pictures(episode: int, camera: int, length: int, size: tuple[int, int] = (64, 48)) -> NDArray[np.uint8]:
    """Return images (T, H, W, 3) of a bright bar moving over a shaded ground; each episode and camera differs."""
    width, height = size
    x, t = np.arange(width)[None, None, :], np.arange(length)[:, None, None]
    bar = np.abs((x - 3 * t - 11 * episode) % width - width / 2) < 5
    ground = 70 + 50 * camera + np.linspace(0, 50, height)[None, :, None] * np.ones((length, 1, width))
    tint = np.array([1.0, 0.8 - 0.1 * camera, 0.5 + 0.1 * (episode % 3)])
    return (np.where(bar, 230, ground)[..., None] * tint).clip(0, 255).astype(np.uint8)


def write_video(path: Path, images: NDArray[np.uint8], *, codec: str = "libx264", **options: str) -> None:
    """Write a plain MP4 with B-frames, the default of FFmpeg."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream(codec, rate=FPS)
        stream.height, stream.width, stream.pix_fmt = *images.shape[1:3], "yuv420p"
        stream.options = {"g": "12", "preset": "veryfast", "threads": "1"} | options
        for image in images:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
        container.mux(stream.encode())


def numbers(episode: int, length: int) -> dict[str, NDArray[Any]]:
    """Return state and action of an episode, which are smooth and different in every episode."""
    phase = np.linspace(0, 2, length)[:, None] + np.random.default_rng(episode).uniform(0, 3, 4)
    state = np.sin(phase).astype(np.float32)
    return {"observation.state": state, "action": np.roll(state, -1, axis=0)}


def write_v21(folder: Path, lengths: Sequence[int] = (20, 13, 27, 16), *, encode: bool = True, **video: Any) -> Path:
    """Write a dataset of some episodes, with a user's file and a tool's file in it; videos may be added later."""
    meta = folder / "meta"
    meta.mkdir(parents=True)
    features = {
        "observation.state": {"dtype": "float32", "shape": [4], "names": None},
        "action": {"dtype": "float32", "shape": [4], "names": None},
        **{name: {"dtype": "video", "shape": [48, 64, 3], "names": None, "info": {}} for name in CAMERAS},
        "timestamp": {"dtype": "float32", "shape": [1], "names": None},
        **{
            name: {"dtype": "int64", "shape": [1], "names": None}
            for name in ("frame_index", "episode_index", "index", "task_index")
        },
    }
    start, rows, stats = 0, [], []
    for episode, length in enumerate(lengths):
        place = {"episode_chunk": episode // 3, "episode_index": episode}
        columns = numbers(episode, length)
        _write_rows(folder / _DATA.format(**place), columns, episode, start)
        found = {name: _stats(values) for name, values in columns.items()}
        for camera, name in enumerate(CAMERAS):
            images = pictures(episode, camera, length if encode else 1)
            if encode:
                write_video(folder / _VIDEO.format(video_key=name, **place), images, **video)
            found[name] = _image_stats(images)
        rows.append(
            {"episode_index": episode, "tasks": [TEXTS[episode % 2]], "length": length, "success": episode != 1}
        )
        stats.append({"episode_index": episode, "stats": found})
        start += length
    info = {
        "codebase_version": "v2.1",
        "robot_type": "somebody's",
        "total_episodes": len(lengths),
        "total_frames": start,
        "total_tasks": 2,
        "total_videos": 2 * len(lengths),
        "total_chunks": -(-len(lengths) // 3),
        "chunks_size": 3,
        "fps": FPS,
        "splits": {"train": f"0:{len(lengths) - 1}", "val": f"{len(lengths) - 1}:{len(lengths)}"},
        "data_path": _DATA,
        "video_path": _VIDEO,
        "features": features,
    }
    (meta / "info.json").write_text(json.dumps(info))
    tasks = [{"task_index": number, "task": text} for number, text in enumerate(TEXTS)]
    for name, lines in (("episodes", rows), ("episodes_stats", stats), ("tasks", tasks)):
        (meta / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (meta / "modality.json").write_text('{"state": {}}')
    (folder / "README.md").write_text("# mine\n")
    return folder


_DATA = "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet"
_VIDEO = "videos/chunk-{episode_chunk:03d}/{video_key}/episode_{episode_index:06d}.mp4"


def _write_rows(path: Path, columns: dict[str, NDArray[Any]], episode: int, start: int) -> None:
    length = len(columns["action"])
    vectors = {
        name: pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), values.shape[1])
        for name, values in columns.items()
    }
    frames = np.arange(length)
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table(
        vectors
        | {
            "timestamp": (frames / FPS).astype(np.float32),
            "frame_index": frames,
            "episode_index": np.full(length, episode),
            "index": frames + start,
            "task_index": np.full(length, episode % 2),
        }
    )
    pq.write_table(table, path)


def _stats(values: NDArray[Any]) -> dict[str, Any]:
    return {
        "min": values.min(0).tolist(),
        "max": values.max(0).tolist(),
        "mean": values.mean(0).tolist(),
        "std": values.std(0).tolist(),
        "count": [len(values)],
    }


def _image_stats(images: NDArray[np.uint8]) -> dict[str, Any]:
    flat = images.reshape(-1, 3) / 255.0
    found = {"min": flat.min(0), "max": flat.max(0), "mean": flat.mean(0), "std": flat.std(0)}
    return {name: value.reshape(3, 1, 1).tolist() for name, value in found.items()} | {"count": [len(images)]}
