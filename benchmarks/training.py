"""Training samples per CPU-second: Nimbus's reader and lerobot's dataset class, on the same LeRobot v3.0 files.

    NIMBUS_LEROBOT_PYTHON=~/nimbus-lerobot/bin/python python benchmarks/training.py [--episodes 20] [--frames 150]

A sample is two images of 320 x 240, the state, and the next 16 actions. Further measurements: the fraction of time for
which a training run waits if a batch of 32 takes 50 ms, and the times to open and to filter a manifest of 100,000
episodes.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import numpy as np  # noqa: E402

from nimbus.datagen.datasets.export.export import export  # noqa: E402
from nimbus.datagen.datasets.export.parquet import BOOL, INT, TEXT, write_table  # noqa: E402
from nimbus.datagen.datasets.export.shards import FORMAT, MANIFEST  # noqa: E402
from nimbus.datagen.datasets.training.reader import Reader, collate  # noqa: E402
from nimbus.datagen.datasets.training.samples import Samples  # noqa: E402
from nimbus.datagen.datasets.training.sharded import ShardManifest  # noqa: E402
from tests.support.synthetic import make_rendered, write_dataset  # noqa: E402

HORIZON = 16
COUNT = 600
STEP = 0.05
"""Time that a batch of 32 takes in training, as on a GPU [s]."""


def rate(read: Callable[[], int]) -> float:
    """Return the samples per CPU-second."""
    begin = time.process_time()
    return read() / (time.process_time() - begin)


def measure(folder: Path) -> dict[str, float]:
    """Measure one dataset: random rows, an epoch in shuffled blocks, and waiting of training with read-ahead."""
    windows = {"action": range(HORIZON)}
    with Reader(folder, windows=windows) as reader:
        rows = np.random.default_rng(0).permutation(len(reader))[:COUNT]
        reader[0]
        random = rate(lambda: sum(1 for row in rows if reader[int(row)]))
        samples = Samples(reader, ahead=0)
        blocks = rate(lambda: len([None for _ in samples]))
        ahead = Samples(Reader(folder, windows=windows), seed=1)
        begin = time.perf_counter()
        batch: list[Any] = []
        for sample in ahead:
            batch.append(sample)
            if len(batch) == 32:
                collate(batch)
                batch.clear()
                time.sleep(STEP)
        wall = time.perf_counter() - begin
    return {"random": random, "blocks": blocks, "wait share": ahead.wait_seconds / wall}


def manifest(folder: Path, count: int) -> dict[str, float]:
    """Return the wall times to open a manifest, and to read its filtered rows [s]."""
    random = np.random.default_rng(0)
    digests = [f"{number:064x}" for number in range(count)]
    ids = [f"sort_trash-s0-{number:06d}-v0-{number:08x}" for number in range(count)]
    columns: dict[str, Any] = {
        "episode_id": (ids, TEXT),
        "seed": (np.zeros(count, np.int64), INT),
        "index": (np.arange(count), INT),
        "variant": (np.zeros(count, np.int64), INT),
        "success": (random.random(count) < 0.95, BOOL),
        "reason": (["none"] * count, TEXT),
        "length": (random.integers(50, 400, count), INT),
        "instruction": (["Sort the trash."] * count, TEXT),
        "content_sha256": (digests, TEXT),
        "shard": (np.arange(count) // 300, INT),
    }
    for part in ("hdf5", "video/front", "video/wrist"):
        columns |= {f"{part}/offset": (random.integers(0, 10**9, count), INT)}
        columns |= {f"{part}/bytes": (random.integers(0, 10**7, count), INT), f"{part}/sha256": (digests, TEXT)}
    told = json.dumps({"format": FORMAT, "source": {}})
    write_table(folder / MANIFEST, columns, told={"nimbus": told})
    found = {"bytes": float((folder / MANIFEST).stat().st_size)}
    for name, where in (("open", None), ("filtered", [("success", "=", True), ("length", ">", 300)])):
        begin = time.perf_counter()
        found[f"{name} rows"] = float(len(ShardManifest(folder, where=where)))
        found[name] = time.perf_counter() - begin
    return found


def theirs(folder: Path, python: str) -> dict[str, float]:
    """Return lerobot's figures, by decoder."""
    script = Path(__file__).with_name("lerobot_loader.py")
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"HF_HUB_OFFLINE": "1"}
    line = [python, str(script), str(folder), str(COUNT), str(HORIZON)]
    done = subprocess.run(line, env=env, capture_output=True, text=True, check=True)
    sys.stderr.write(done.stderr[-500:])
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Print a table, and JSON if requested."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=20)
    parser.add_argument("--frames", type=int, default=150)
    parser.add_argument("--rows", type=int, default=100_000, help="number of rows of the manifest")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="nimbus-training-"))
    try:
        items = [make_rendered(row, steps=args.frames, width=320, height=240) for row in range(args.episodes)]
        write_dataset(root / "data", items, images="video")
        found: dict[str, dict[str, float]] = {}
        for to in ("lerobot", "shards"):
            export(root / "data", root / to, to=to)
        for name in ("data", "shards", "lerobot"):
            found[name] = measure(root / name)
        if python := os.environ.get("NIMBUS_LEROBOT_PYTHON"):
            found["lerobot itself"] = theirs(root / "lerobot", python)
        (root / "manifest").mkdir()
        found["manifest"] = manifest(root / "manifest", args.rows)
    finally:
        shutil.rmtree(root)
    for name, figures in found.items():
        sys.stdout.write(f"{name:15}" + "".join(f"  {key} {value:,.3g}" for key, value in figures.items()) + "\n")
    if itself := found.get("lerobot itself"):
        for way in ("random", "blocks"):
            ratio = found["lerobot"][way] / max(itself.values())
            sys.stdout.write(f"{way} / lerobot's: {ratio:.1f}\n")
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
