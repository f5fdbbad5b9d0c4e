"""Comparison of the cell with its theoretical bound, with the coupled baseline, and with two serial runs side by side.

    python benchmarks/cell.py bound --episodes 60
    python benchmarks/cell.py coupled --episodes 10 --pairs 3
    python benchmarks/cell.py side-by-side --task slide_block --episodes 40 --pairs 3
    python benchmarks/cell.py splits --episodes 16
    python benchmarks/cell.py hash --episodes 8
    python benchmarks/cell.py hour --episodes 40
    python benchmarks/cell.py all --json cell.json

Every run is a separate process, as a user starts it. Wall-clock figures are only meaningful on an idle machine, so the
load before each run is part of the result.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "exts/nimbus.datagen"))
RUNNER = ROOT / "runner" / "runner.py"

Figures = dict[str, Any]


def start(folder: Path, *words: str, episodes: int, task: str = "sort_trash") -> subprocess.Popen[str]:
    """Start a run in separate processes."""
    line = [sys.executable, str(RUNNER), "run", "--task", task, "--episodes", str(episodes), "--out", str(folder)]
    log = (folder.parent / f"{folder.name}.log").open("w")
    return subprocess.Popen([*line, *words], stdout=log, stderr=subprocess.STDOUT, text=True)


def run(folder: Path, *words: str, episodes: int, task: str = "sort_trash") -> Figures:
    """Run to the end, and return the report."""
    load, begin = os.getloadavg()[0], time.monotonic()
    code = start(folder, *words, episodes=episodes, task=task).wait()
    wall = time.monotonic() - begin
    if code not in (0, 1):
        raise SystemExit(f"{' '.join(words)} ended with {code}:\n{(folder.parent / f'{folder.name}.log').read_text()}")
    status = json.loads((folder / "status.json").read_text())
    say(f"{folder.name}: {status['stored']} stored in {wall:.1f} s (load before: {load:.1f})")
    return {
        "wall": wall,
        "run_wall": status["updated"] - status["started"],
        "startup": status["startup_seconds"],
        "stored": status["stored"],
        "attempts": status["attempts"],
        "failures": sum(status["failures"].values()),
        "cpu": status["cpu_times"],
        "longest": status["longest_episode"],
        "cores": status["cores"],
        "switches": status["switches"],
        "load_before": load,
    }


def measure_bound(folder: Path, *, episodes: int) -> Figures:
    """Measure the wall time of a run, divided by the shortest time that its measured work could take on these cores."""
    cell = run(folder / "bound", episodes=episodes)
    work = sum(seconds for stage, seconds in cell["cpu"].items() if stage != "load")
    bound = max(work / cell["cores"], cell["longest"])
    steady = cell["run_wall"] - cell["startup"]
    with_load = max((work + cell["cpu"].get("load", 0.0)) / cell["cores"], cell["longest"])
    return cell | {
        "bound": bound,
        "after_startup": steady / bound,
        "with_startup": cell["run_wall"] / with_load,
    }


def measure_coupled(folder: Path, *, episodes: int, pairs: int) -> Figures:
    """Measure the throughput of the cell, divided by that of the coupled baseline, in pairs of runs."""
    rows = []
    for pair in range(pairs):
        coupled = run(folder / f"coupled{pair}", "--coupled", episodes=episodes)
        cell = run(folder / f"cell{pair}", episodes=episodes)
        rows.append({"coupled": coupled, "cell": cell, "ratio": _throughput(cell) / _throughput(coupled)})
    attempts = sum(row["coupled"]["attempts"] for row in rows)
    plan_yield = 1 - sum(row["coupled"]["failures"] for row in rows) / attempts
    ratio = statistics.median(row["ratio"] for row in rows)
    return {"pairs": rows, "yield": plan_yield, "ratio": ratio, "asked": 0.85 * 2 / plan_yield}


def measure_side_by_side(folder: Path, *, episodes: int, pairs: int, task: str) -> Figures:
    """Measure the throughput of the cell relative to two simultaneous serial runs with half of the episodes each.

    At the end of a run, one core is idle until the last episode on the other core is complete, so many short episodes
    give a more accurate result than a few long ones.
    """
    rows = []
    for pair in range(pairs):
        load = os.getloadavg()[0]
        folders = {seed: folder / f"twin{pair}{seed}" for seed in (0, 1)}
        half = episodes // 2
        twins = [
            start(path, "--serial", "--seed", str(seed), episodes=half, task=task) for seed, path in folders.items()
        ]
        if any(twin.wait() not in (0, 1) for twin in twins):
            raise SystemExit("a serial run failed")
        states = [json.loads((path / "status.json").read_text()) for path in folders.values()]
        stored = sum(state["stored"] for state in states)
        # Loading times are excluded here and below, because the cell is started twice, one run after the other, while
        # the two serial runs start at the same time.
        begin = min(state["started"] + state["startup_seconds"] for state in states)
        wall = max(state["updated"] for state in states) - begin
        say(f"two serial runs: {stored} stored in {wall:.1f} s (load before: {load:.1f})")
        halves = [run(folder / f"half{pair}{seed}", "--seed", str(seed), episodes=half, task=task) for seed in (0, 1)]
        cell_wall = sum(each["run_wall"] - each["startup"] for each in halves)
        ratio = sum(each["stored"] for each in halves) / cell_wall / (stored / wall)
        rows.append({"serial_wall": wall, "cell_wall": cell_wall, "ratio": ratio, "load_before": load})
    return {"pairs": rows, "ratio": statistics.median(row["ratio"] for row in rows)}


def measure_splits(folder: Path, *, episodes: int) -> Figures:
    """Compare dynamic runs, started from several splits between planners and renderers, with the best run with a fixed
    split.
    """
    fixed = {split: run(folder / f"fixed{split}", "--workers", split, episodes=episodes) for split in SPLITS}
    dynamic = {
        split: run(folder / f"dynamic{split}", "--workers", split, "--roles", "dynamic", episodes=episodes)
        for split in SPLITS
    }
    best = min(row["wall"] for row in fixed.values())
    return {
        "fixed": fixed,
        "dynamic": dynamic,
        "ratios": {split: row["wall"] / best for split, row in dynamic.items()},
        "switches": {split: row["switches"] for split, row in dynamic.items()},
    }


SPLITS = ("1x1", "2x1", "1x3")


def measure_hash(folder: Path, *, episodes: int, kills: int = 20) -> Figures:
    """Compare the hashes of a serial run, of several splits, and of a run whose processes are all killed repeatedly."""
    from nimbus.datagen.store.verify import dataset_hashes
    from nimbus.runner.system.processes import cell_tag, sweep

    run(folder / "clean", "--serial", episodes=episodes)
    hashes = {"serial": dataset_hashes(folder / "clean")}
    for split in SPLITS:
        run(folder / f"hash{split}", "--workers", split, episodes=episodes)
        hashes[split] = dataset_hashes(folder / f"hash{split}")
    chance = random.Random(0)
    killed = 0
    while True:
        process = start(folder / "killed", episodes=episodes)
        try:
            process.wait(timeout=chance.uniform(8.0, 25.0) if killed < kills else None)
            break
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            sweep(cell_tag(folder / "killed"))
            killed += 1
    hashes["killed"] = dataset_hashes(folder / "killed")
    return {"hashes": hashes, "kills": killed, "equal": len({json.dumps(found) for found in hashes.values()}) == 1}


def measure_hour(folder: Path, *, episodes: int) -> Figures:
    """Measure the stored episodes per hour of a single pick and place with two cameras."""
    cell = run(folder / "hour", episodes=episodes, task="pick_and_place")
    return cell | {"per_hour": 3600 * cell["stored"] / cell["run_wall"]}


def _throughput(figures: Figures) -> float:
    return figures["stored"] / figures["wall"]


def say(text: str) -> None:
    """Print progress, separately from the result."""
    sys.stderr.write(text + "\n")


def table(results: Figures) -> str:
    """Return the table of the requested figures."""
    rows: list[tuple[str, str]] = []
    if found := results.get("bound"):
        figures = f"{found['after_startup']:.3f} / {found['with_startup']:.3f}"
        rows.append(("wall ÷ bound, after start-up / with it", figures))
    if found := results.get("coupled"):
        name = f"throughput ÷ coupled (asked {found['asked']:.2f} at yield {found['yield']:.2f})"
        rows.append((name, f"{found['ratio']:.2f}"))
    if found := results.get("side-by-side"):
        rows.append(("throughput ÷ two serial runs side by side", f"{found['ratio']:.3f}"))
    if found := results.get("splits"):
        for split, ratio in found["ratios"].items():
            rows.append((f"dynamic from {split} ÷ best fixed", f"{ratio:.3f}, {found['switches'][split]} switches"))
    if found := results.get("hash"):
        rows.append((f"hashes equal, {found['kills']} kills", str(found["equal"])))
    if found := results.get("hour"):
        rows.append(("pick_and_place, stored episodes an hour", f"{found['per_hour']:.0f}"))
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in rows)


def main() -> None:
    """Make the measurements that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="+", choices=(*MEASURES, "all"))
    parser.add_argument("--episodes", type=int)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--task", default="sort_trash", help="task of side-by-side")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    names = list(MEASURES) if "all" in args.what else args.what
    results: Figures = {"machine": {"cores": os.cpu_count(), "load": os.getloadavg()}}
    with tempfile.TemporaryDirectory(prefix="nimbus-cell-") as scratch:
        for name in names:
            measure, episodes = MEASURES[name]
            extra: Figures = {"pairs": args.pairs} if name in ("coupled", "side-by-side") else {}
            extra |= {"task": args.task} if name == "side-by-side" else {}
            folder = Path(scratch, name)
            folder.mkdir()
            results[name] = measure(folder, episodes=args.episodes or episodes, **extra)
            if args.json:
                args.json.write_text(json.dumps(results, indent=2) + "\n")
    sys.stdout.write(table(results) + "\n")


MEASURES = {
    "bound": (measure_bound, 60),
    "coupled": (measure_coupled, 8),
    "side-by-side": (measure_side_by_side, 12),
    "splits": (measure_splits, 12),
    "hash": (measure_hash, 8),
    "hour": (measure_hour, 40),
}

if __name__ == "__main__":
    main()
