"""Conversion of LeRobot v2.1 to v3.0 by Nimbus and by lerobot's own converter: CPU time, and size and load time of the
tables.

    NIMBUS_LEROBOT_PYTHON=~/nimbus-lerobot/bin/python \\
        python benchmarks/convert.py [--episodes 1000] [--frames 60] [--json FILE]

Without that Python, only Nimbus is measured.
"""  # noqa: D208

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "exts/nimbus.datagen"), str(ROOT)]

import pyarrow.parquet as pq  # noqa: E402

from tests.support.foreign import CAMERAS, pictures, write_v21, write_video  # noqa: E402

DISTINCT = 10
"""Number of videos that are encoded; the others are copies."""
SIZE = (128, 96)
_OFFICIAL = """
from tests.support.lerobot_reader import ready
ready()
import resource, sys, json
try:
    from lerobot.datasets.v30.convert_dataset_v21_to_v30 import convert_dataset
except ModuleNotFoundError:  # since 0.5
    from lerobot.scripts.convert_dataset_v21_to_v30 import convert_dataset
ready = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
convert_dataset("data", root=sys.argv[1], push_to_hub=False)
total = sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
print("\\n" + json.dumps({"imports": ready, "total": total}))
"""


def make(folder: Path, *, episodes: int, frames: int) -> None:
    """Write a v2.1 dataset whose videos are copies of a few."""
    write_v21(folder, [frames] * episodes, encode=False)
    made = folder.with_name("videos")
    for number in range(DISTINCT):
        for camera in range(len(CAMERAS)):
            write_video(made / f"{number}-{camera}.mp4", pictures(number, camera, frames, SIZE), preset="ultrafast")
    for episode in range(episodes):
        for camera, name in enumerate(CAMERAS):
            path = folder / f"videos/chunk-{episode // 3:03d}/{name}/episode_{episode:06d}.mp4"
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(made / f"{episode % DISTINCT}-{camera}.mp4", path)
    shutil.rmtree(made)


def cpu_of(words: list[str]) -> tuple[float, float]:
    """Return the CPU and wall time of a process and its children [s]."""
    before, begin = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]), time.monotonic()
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    return sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]) - before, time.monotonic() - begin


def official(folder: Path, python: str) -> dict[str, float]:
    """Return the CPU time of lerobot's converter, in total and for its import [s]."""
    done = subprocess.run([python, "-c", _OFFICIAL, str(folder)], capture_output=True, text=True, cwd=ROOT)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return json.loads(done.stdout.splitlines()[-1])


def bytes_of(folder: Path) -> dict[str, int]:
    """Return the sizes of the top folders [bytes]."""
    kinds = ("data", "meta", "videos")
    return {kind: sum(path.stat().st_size for path in (folder / kind).rglob("*") if path.is_file()) for kind in kinds}


def read_tables(folder: Path) -> None:
    """Read every row and every episode's statistics, which a reader needs before it begins."""
    for path in sorted((folder / "data").rglob("*.parquet")):
        pq.ParquetFile(path).read()
    for path in sorted((folder / "meta").rglob("*.parquet")):
        pq.ParquetFile(path).read()
    for path in sorted((folder / "meta").glob("*.jsonl")):
        [json.loads(line) for line in path.open()]


def cpu(work: Callable[[], None], times: int = 3) -> float:
    """Return the smallest CPU time of several calls [s]."""
    found = []
    for _ in range(times):
        begin = time.process_time()
        work()
        found.append(time.process_time() - begin)
    return min(found)


def main() -> None:
    """Print a table, and write it as JSON if requested."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--episodes", type=int, default=1000)
    parser.add_argument("--frames", type=int, default=60)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder / "data", episodes=args.episodes, frames=args.frames)
        runner = ROOT / "runner" / "runner.py"
        ours, wall = cpu_of([sys.executable, str(runner), "convert", str(folder / "data"), "--out", str(folder / "v3")])
        before, after = bytes_of(folder / "data"), bytes_of(folder / "v3")
        loads = [cpu(lambda place=place: read_tables(folder / place)) for place in ("data", "v3")]
        found: dict[str, object] = {
            "episodes": args.episodes,
            "ours_cpu": ours,
            "ours_wall": wall,
            "bytes_v21": before,
            "bytes_v30": after,
            "bytes_ratio": sum(after.values()) / sum(before.values()),
            "load_v21": loads[0],
            "load_v30": loads[1],
            "load_ratio": loads[0] / loads[1],
        }
        if python := os.environ.get("NIMBUS_LEROBOT_PYTHON"):
            theirs = official(folder, python)
            found |= {"official_cpu": theirs["total"], "official_imports": theirs["imports"]}
            found |= {"cpu_ratio": ours / theirs["total"]}
    for key, value in found.items():
        sys.stdout.write(f"{key:18} {value if not isinstance(value, float) else f'{value:.3f}'}\n")
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
