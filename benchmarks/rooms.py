"""Shipped tasks in generated rooms of each family: attempts at the same layouts as on the bench, and cost of rendered
views.

    python benchmarks/rooms.py --tasks 12 --out rooms.json
    python benchmarks/rooms.py --tasks 0 --views 64 --sheet rooms.png --out rooms.json

A layout at which a task fails on its bench does not count as a failure of a room. Attempts render nothing. Rows that
``--out`` already contains are not made again. ``--views`` renders rows of one episode of ``stack_blocks`` on its bench
and in a room of each family, in turns, and compares the CPU time of a view; light is baked before the measurement.
``--sheet`` writes an image of each.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "exts/nimbus.datagen"))
os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

import numpy as np  # noqa: E402
from PIL import Image  # noqa: E402

from nimbus.datagen.episode.layout import EpisodeKey, Layout  # noqa: E402
from nimbus.datagen.execute.planner import run_attempt  # noqa: E402
from nimbus.datagen.load.scene_loader import load_assets  # noqa: E402
from nimbus.datagen.random_streams import generator  # noqa: E402
from nimbus.datagen.randomize.tabletop import draw_physical, draw_visual  # noqa: E402
from nimbus.datagen.render.scene_renderer import SceneRenderer  # noqa: E402
from nimbus.datagen.rooms.settings import FAMILIES  # noqa: E402
from nimbus.datagen.simulate.newton import NewtonSimulation  # noqa: E402
from nimbus.datagen.tasks.plugins import discover, discover_components  # noqa: E402
from nimbus.datagen.tasks.task import Task, load_task, parse_task  # noqa: E402
from nimbus.runner.system.threads import prepare_libraries  # noqa: E402

TASKS = (
    *("close_laptop", "press_button", "throw_switch", "open_drawer", "pick_and_place", "stack_blocks"),
    *("rotate_block", "place_beside", "push_to_region", "hang_ring", "insert_peg", "slide_block"),
)
BENCH = "bench"
VIEWED = "stack_blocks"
TURNS = 3
"""Number of turns of the comparison of views; the median counts."""


def main() -> int:
    """Attempt each task in each family, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=len(TASKS), help="number of tasks from the list")
    parser.add_argument("--seed", type=int, default=3, help="seed of the rooms")
    parser.add_argument("--views", type=int, default=0, metavar="ROWS", help="compare views of this number of rows")
    parser.add_argument("--sheet", type=Path, help="file for an image of the last row in each room, with --views")
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
    if args.views:
        rows["views"] = compare_views(args.views, args.seed, args.sheet)
        args.out.write_text(json.dumps(rows, indent=1))
        sys.stdout.write(f"views: {json.dumps(rows['views'])}\n")
    return 0


def in_family(name: str, family: str, seed: int) -> Task:
    """Read a shipped task and move it into a room of a family."""
    task = load_task(name)
    if family == BENCH:
        return task
    scene = f"scene: {{family: {family}, seed: {seed}, bench: {task.scene}}}\n"
    return parse_task(task.text.replace(f"scene: {task.scene}\n", scene), name=name)


def compare_views(count: int, seed: int, sheet: Path | None) -> dict[str, Any]:
    """Return the CPU milliseconds of a view by family, and the ratio of the bench's time to each."""
    task = load_task(VIEWED)
    assets = load_assets(task)
    simulation = NewtonSimulation(assets.stage, assets.robot, rate=task.rate)
    physical = draw_physical(task, assets, seed=0, index=0)
    made = run_attempt(task, simulation, physical, streams=partial(generator, 0, 0, "attempt", 0), planner="ompl")
    first = max(0, (made.step_count - count) // 2)
    states = made.body_names, made.body_positions[first : first + count], made.body_wxyz[first : first + count]
    renderers, pictures, views = {}, [], 0
    for family in (BENCH, *FAMILIES):
        task = in_family(VIEWED, family, seed)
        assets = load_assets(task)
        key = EpisodeKey(task=task.name, task_hash=task.content_hash, seed=0, index=0)
        visual = draw_visual(task, assets.stage, assets.robot, physical, key=key)
        renderers[family] = renderer = SceneRenderer(assets.stage, assets.robot)
        renderer.load(Layout(key=key, physical=physical, visual=visual))
        shown = _render(renderer, states)
        views = count * len(visual.cameras)
        pictures.append(np.concatenate([one.rgb[-1] for one in shown.values()], axis=1))
    if sheet:
        Image.fromarray(np.concatenate(pictures)).save(sheet)
    times: dict[str, list[float]] = {family: [] for family in renderers}
    for _ in range(TURNS):
        for family, renderer in renderers.items():
            begin = time.process_time()
            _render(renderer, states)
            times[family].append(1e3 * (time.process_time() - begin) / views)
    medians = {family: round(statistics.median(taken), 2) for family, taken in times.items()}
    shares = {family: round(medians[BENCH] / taken, 2) for family, taken in medians.items() if family != BENCH}
    return {"CPU [ms] of a view": medians, "of the bench": shares, "median": statistics.median(shares.values())}


def _render(renderer: SceneRenderer, states: tuple[Any, Any, Any]) -> dict[str, Any]:
    """Render all rows in stacks; return the last stack's frames by camera."""
    names, positions, wxyz = states
    shown: dict[str, Any] = {}
    for start in range(0, len(positions), renderer.stack):
        some = slice(start, start + renderer.stack)
        shown = dict(renderer.render(names, positions[some], wxyz[some], first_step=start))
    return shown


def attempt(name: str, family: str, seed: int) -> dict[str, Any]:
    """Attempt the first layout of a task in a room of a family, or on its bench."""
    task, begin = in_family(name, family, seed), time.process_time()
    assets = load_assets(task)
    simulation = NewtonSimulation(assets.stage, assets.robot, rate=task.rate)
    layout = draw_physical(task, assets, seed=0, index=0)
    streams = partial(generator, 0, 0, "attempt", 0)
    outcome = run_attempt(task, simulation, layout, streams=streams, planner="ompl").outcome
    seconds = round(time.process_time() - begin, 1)
    return {"success": outcome.success, "phase": outcome.phase, "reason": str(outcome.reason), "seconds": seconds}


if __name__ == "__main__":
    raise SystemExit(main())
