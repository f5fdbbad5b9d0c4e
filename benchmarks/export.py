"""Frames per CPU-second exported to LeRobot v3.0, from lossless images and from video, and by lerobot's own writer.

    NIMBUS_LEROBOT_PYTHON=~/nimbus-lerobot/bin/python python benchmarks/export.py [--frames 100] [--episodes 4]

Lerobot's writer receives frames as arrays. Nimbus must decompress them from the dataset first, or join videos.
"""  # noqa: D208

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "exts/nimbus.datagen"), str(ROOT)]

from nimbus.datagen.datasets.export.export import export  # noqa: E402
from nimbus.datagen.store.episode_file.jobs import Images  # noqa: E402

IMAGES: tuple[Images, ...] = ("lossless", "video")

SIZE = (640, 480)
NOISE = 1.0
"""Standard deviation of noise added to the images [levels]; synthetic images without noise compress too well."""


def make(folder: Path, images: Images, *, episodes: int, frames: int) -> None:
    """Write a dataset of one camera; return its frames as arrays."""
    from dataclasses import replace

    from nimbus.datagen.episode.observation import Observation
    from nimbus.datagen.store.writer import Hdf5Writer
    from tests.support.synthetic import make_frames, make_rendered, open_dataset

    (folder / "arrays").mkdir(exist_ok=True)
    random = np.random.default_rng(0)
    items = []
    for row in range(episodes):
        seen = make_frames(0, frames, camera=0, seed=row, width=SIZE[0], height=SIZE[1])
        noise = random.normal(0, NOISE, seen.rgb.shape).astype(np.float32)
        pictures = np.clip(seen.rgb + noise, 0, 255).astype(np.uint8)
        np.save(folder / "arrays" / f"{row}.npy", pictures)
        seen = type(seen)(**{**vars(seen), "rgb": pictures})
        observations = iter([Observation(start=0, cameras={"front": seen})])
        item = make_rendered(row, steps=frames, width=SIZE[0], height=SIZE[1], observations=observations)
        visual = replace(item.layout.visual, cameras=item.layout.visual.cameras[:1])
        items.append(replace(item, layout=replace(item.layout, visual=visual)))
    with open_dataset(folder / images) as dataset:
        writer = Hdf5Writer(dataset, images=images)
        list(writer(iter(items)))
        writer.close()


def ours(folder: Path, images: Images) -> float:
    """Return the CPU time of an export in this process [s]."""
    begin = time.process_time()
    export(folder / images, folder / f"ours-{images}", workers=1)
    return time.process_time() - begin


def theirs(folder: Path, python: str) -> float:
    """Return the CPU time of lerobot's writer, without imports [s]."""
    script = Path(__file__).with_name("lerobot_writer.py")
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"HF_HUB_OFFLINE": "1"}
    line = [python, str(script), str(folder / "arrays"), str(folder / "theirs")]
    done = subprocess.run(line, env=env, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])["cpu_seconds"]


def byte_count(folder: Path) -> int:
    """Return the total size of all files [bytes]."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def main() -> None:
    """Measure both in one run and print a table and JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=100)
    parser.add_argument("--episodes", type=int, default=4)
    args = parser.parse_args()
    python = os.environ.get("NIMBUS_LEROBOT_PYTHON")
    with tempfile.TemporaryDirectory() as name:
        folder, count = Path(name), args.frames * args.episodes
        found = {}
        for images in IMAGES:
            make(folder, images, episodes=args.episodes, frames=args.frames)
            fps = count / ours(folder, images)
            found[images] = {"fps": fps, "bytes": byte_count(folder / f"ours-{images}")}
        if python:
            found["lerobot"] = {"fps": count / theirs(folder, python), "bytes": byte_count(folder / "theirs")}
    for writer, row in found.items():
        sys.stdout.write(f"{writer:8} {row['fps']:8.1f} frames/CPU-s {row['bytes'] / 1e6:8.2f} MB\n")
    if python:
        for images in IMAGES:
            sys.stdout.write(f"{images} / lerobot {found[images]['fps'] / found['lerobot']['fps']:8.2f}\n")
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
