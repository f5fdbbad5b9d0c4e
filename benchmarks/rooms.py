"""Shipped tasks in generated rooms: attempts at the same layouts as on the bench, in each family.

    python benchmarks/rooms.py --tasks 12 --out rooms.json

A task that fails on its bench in a layout is not counted against a room. Nothing is rendered. ``--out`` is read first:
rows that are there already are not made again.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "exts/nimbus.datagen"))
os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

from nimbus.datagen.execute.planner import run_attempt  # noqa: E402
from nimbus.datagen.load.scene_loader import load_assets  # noqa: E402
from nimbus.datagen.random_streams import generator  # noqa: E402
from nimbus.datagen.randomize.tabletop import draw_physical  # noqa: E402
from nimbus.datagen.rooms.settings import FAMILIES  # noqa: E402
from nimbus.datagen.simulate.newton import NewtonSimulation  # noqa: E402
from nimbus.datagen.tasks.plugins import discover, discover_components  # noqa: E402
from nimbus.datagen.tasks.task import load_task, parse_task  # noqa: E402
from nimbus.runner.system.threads import prepare_libraries  # noqa: E402

TASKS = (
    *("close_laptop", "press_button", "throw_switch", "open_drawer", "pick_and_place", "stack_blocks"),
    *("rotate_block", "place_beside", "push_to_region", "hang_ring", "insert_peg", "slide_block"),
)
BENCH = "bench"


def main() -> int:
    """Attempt each task in each family, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=len(TASKS), help="so many of the list")
    parser.add_argument("--seed", type=int, default=3, help="number of the rooms")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    prepare_libraries()
    discover()
    discover_components()
    rows: dict[str, Any] = json.loads(args.out.read_text()) if args.out.exists() else {}
    for name in TASKS[: args.tasks]:
        for family in (BENCH, *FAMILIES):
            if f"{name} {family}" not in rows:
                rows[f"{name} {family}"] = row = attempt(name, family, args.seed)
                args.out.write_text(json.dumps(rows, indent=1))
                sys.stderr.write(f"{name} {family}: {row}\n")
    for name in TASKS[: args.tasks]:
        cells = [rows[f"{name} {family}"] for family in (BENCH, *FAMILIES)]
        sys.stdout.write(f"{name:16} " + " ".join(f"{'ok' if one['success'] else one['reason']:>14}" for one in cells))
        sys.stdout.write("\n")
    return 0


def attempt(name: str, family: str, seed: int) -> dict[str, Any]:
    """Attempt the first layout of a task in a room of a family, or on its bench."""
    task, begin = load_task(name), time.process_time()
    if family != BENCH:
        scene = f"scene: {{family: {family}, seed: {seed}, bench: {task.scene}}}\n"
        task = parse_task(task.text.replace(f"scene: {task.scene}\n", scene), name=name)
    assets = load_assets(task)
    simulation = NewtonSimulation(assets.stage, assets.robot, rate=task.rate)
    layout = draw_physical(task, assets, seed=0, index=0)
    streams = partial(generator, 0, 0, "attempt", 0)
    outcome = run_attempt(task, simulation, layout, streams=streams, planner="ompl").outcome
    seconds = round(time.process_time() - begin, 1)
    return {"success": outcome.success, "phase": outcome.phase, "reason": str(outcome.reason), "seconds": seconds}


if __name__ == "__main__":
    raise SystemExit(main())
