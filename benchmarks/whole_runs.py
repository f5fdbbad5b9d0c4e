"""Check of forecasts, replays and flags of whole runs, a row per task.

Run it as ``python benchmarks/whole_runs.py --out DIR [TASK ...] [--episodes N]``. Each task is run in one
process, as ``nimbus run --serial`` does, with one small camera; a folder that holds a run is continued. Then

- forecast: the estimate of ``nimbus estimate`` for N episodes from the first five, compared with the cost of all N.
  Seconds are CPU seconds, so the figure is also valid on a busy machine; images would only make episodes more similar.
- replays: number of stored episodes that end as before when they are executed again from their files alone.
- flags: values that the yield ledger flags as seldom kept; these tasks have no such values, so each flag is false.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "exts/nimbus.datagen"))
os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

from nimbus.datagen.analysis.forecast import Interval, forecast_run  # noqa: E402
from nimbus.datagen.analysis.yields import find_yields  # noqa: E402
from nimbus.datagen.files.scene_files import scene_file  # noqa: E402
from nimbus.datagen.store.ledger.attempt import Attempt  # noqa: E402
from nimbus.datagen.store.ledger.ledger import Ledger  # noqa: E402
from nimbus.datagen.tasks.task import task_names  # noqa: E402
from nimbus.runner.cell.run import run_serial  # noqa: E402
from nimbus.runner.cell.transport.spec import CellSpec  # noqa: E402
from nimbus.runner.checks.replay import replay  # noqa: E402
from nimbus.runner.commands.estimate import PROBE  # noqa: E402

Figures = dict[str, Any]
_CAMERA = (
    "cameras: {front: {position: [1.5, 0, 0.95], look_at: [0.4, 0, 0.14], vertical_fov: 45 deg, size: [32, 24]}}\n"
)
_CAMERAS = re.compile(r"^cameras:.*?(?=^\S)", re.MULTILINE | re.DOTALL)


def with_small_pictures(name: str, folder: Path) -> Path:
    """Return a copy of a task with one small camera, because only physics matters here."""
    path = folder / f"{name}.yaml"
    path.write_text(_CAMERAS.sub(_CAMERA, scene_file("tasks", name, kind="task").read_text()))
    return path


def measure(name: str, folder: Path, episodes: int, *, replays: int) -> Figures:
    """Run a task, then examine its ledger and its files."""
    path = with_small_pictures(name, folder)
    run_serial(CellSpec(folder=str(folder / name), task=str(path), episodes=episodes))
    ledger = Ledger(folder / name, read_only=True)
    try:
        attempts, runs = ledger.attempts(), ledger.runs()
    finally:
        ledger.close()
    attempts = [attempt for attempt in attempts if attempt.idx < episodes]
    paths = [folder / name / attempt.path for attempt in attempts if attempt.path]
    again = [replay(stored) for stored in paths[: replays or None]]
    figures: Figures = {
        "episodes": episodes,
        "stored": len(paths),
        "attempts": len(attempts),
        "replayed": len(again),
        "same outcome": sum(one.same_outcome for one in again),
        "largest body error [m]": max((one.body_error for one in again), default=0.0),
        "flags": [f"{row.factor}: {row.value}" for row in find_yields(attempts).flags],
    }
    return figures | (_forecast(attempts, episodes, runs[0].startup_seconds) if episodes > PROBE else {})


def _forecast(attempts: list[Attempt], episodes: int, startup: float) -> Figures:
    """Return the interval forecast from the first five episodes, and the cost of all."""
    first = [attempt for attempt in attempts if attempt.idx < PROBE]
    told = forecast_run(first, episodes, cores=1, startup=startup)
    true = {
        "wall_seconds": startup + sum(map(_seconds, attempts)),
        "byte_count": float(sum(attempt.stored_bytes for attempt in attempts)),
        "stored": float(sum(bool(attempt.path) for attempt in attempts)),
    }
    found: Figures = {}
    for what, value in true.items():
        interval: Interval = getattr(told, what)
        found[what] = asdict(interval) | {"true": value, "inside": interval.low <= value <= interval.high}
    return {"forecast": found}


def _seconds(attempt: Attempt) -> float:
    return sum(spent for name, spent in attempt.times.items() if not name.endswith("_wait") and name != "load")


def _row(name: str, figures: Figures) -> str:
    told = figures.get("forecast", {}).get("wall_seconds")
    words = "-"
    if told:
        words = f"{told['true']:6.0f} s in {told['low']:.0f} to {told['high']:.0f} s {'' if told['inside'] else 'OUT'}"
    same = f"{figures['same outcome']}/{figures['replayed']}"
    stored = f"{figures['stored']}/{figures['episodes']}"
    return f"{name:<24} {stored:>7} {same:>7} {len(figures['flags']):>5}  {words}\n"


def _totals(known: dict[str, Figures]) -> str:
    same, tried = (sum(one[what] for one in known.values()) for what in ("same outcome", "replayed"))
    told = [one["forecast"]["wall_seconds"]["inside"] for one in known.values() if "forecast" in one]
    flags = sum(len(one["flags"]) for one in known.values())
    forecasts = f"{sum(told)} of {len(told)} times inside their interval"
    return f"{same} of {tried} replays end the same, {flags} flags in {len(known)} runs, {forecasts}\n"


def main() -> None:
    """Run the requested tasks; figures of tasks in the JSON file are kept."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", metavar="TASK", help="names of tasks (default: all shipped tasks)")
    parser.add_argument("--episodes", type=int, default=60)
    parser.add_argument("--replays", type=int, default=0, help="number of episodes to replay (default: all)")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    known: dict[str, Figures] = json.loads(args.json.read_text()) if args.json and args.json.exists() else {}
    sys.stdout.write(f"{'task':<24} {'stored':>7} {'replays':>7} {'flags':>5}  CPU of the run, and its forecast\n")
    for name in args.tasks or task_names():
        known[name] = measure(name, args.out, args.episodes, replays=args.replays)
        sys.stdout.write(_row(name, known[name]))
        sys.stdout.flush()
        if args.json:
            args.json.write_text(json.dumps(known, indent=2) + "\n")
    sys.stdout.write(_totals(known))


if __name__ == "__main__":
    main()
