"""Time for which the render loop waits for its frames to be stored, with lossless images and with video.

    python benchmarks/encoding.py [--episodes 3] [--task sort_trash]

The runs have one planner and one renderer process. The table has the renderer's waiting time as a fraction of its
rendering time, the CPU time of storing, bytes per episode, and the cost of an export to LeRobot v3.0.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from nimbus.datagen.datasets.export.export import export
from nimbus.datagen.store.ledger.ledger import Ledger

RUNNER = Path(__file__).resolve().parents[1] / "runner" / "runner.py"


def measure(folder: Path, images: str, *, task: str, episodes: int) -> dict[str, float]:
    """Measure a run, then an export."""
    line = [sys.executable, str(RUNNER), "run", "--task", task, "--episodes", str(episodes), "--workers", "1x1"]
    subprocess.run([*line, "--images", images, "--out", str(folder)], check=True, stdout=subprocess.DEVNULL)
    ledger = Ledger(folder, read_only=True)
    stored = ledger.stored()
    ledger.close()
    times = {name: sum(attempt.times[name] for attempt in stored) for name in ("render", "store", "store_wait")}
    frames = sum(attempt.step_count for attempt in stored)
    begin = time.process_time()
    export(folder, folder.with_name(f"{images}-lerobot"), workers=1)
    return {
        "render ms/frame": 1e3 * times["render"] / frames,
        "store ms/frame": 1e3 * times["store"] / frames,
        "wait share": times["store_wait"] / times["render"],
        "MB/episode": sum(attempt.stored_bytes for attempt in stored) / len(stored) / 1e6,
        "export frames/CPU-s": frames / (time.process_time() - begin),
    }


def main() -> None:
    """Print a table, and JSON if requested."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=3)
    parser.add_argument("--task", default="sort_trash")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="nimbus-encoding-"))
    try:
        found = {
            images: measure(root / images, images, task=args.task, episodes=args.episodes)
            for images in ("lossless", "video")
        }
    finally:
        shutil.rmtree(root)
    for name, figures in found.items():
        sys.stdout.write(f"{name:9}" + "".join(f"  {key} {value:,.3g}" for key, value in figures.items()) + "\n")
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
