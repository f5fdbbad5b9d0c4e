"""Yield of tasks: planned and executed in physics, not rendered. Prints a row per task, and writes JSON.

Run it as ``python benchmarks/tasks.py [TASK ...] [--episodes N] [--attempts N] [--json FILE]``; without a task, it
measures all shipped tasks. Times are CPU seconds of one core.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "exts/nimbus.datagen"))
os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

import numpy as np  # noqa: E402

from nimbus.datagen.execute.recorder import largest_creep  # noqa: E402
from nimbus.datagen.pipeline import load_pipeline  # noqa: E402
from nimbus.datagen.stages import Chain, Planned, Request  # noqa: E402
from nimbus.datagen.tasks.task import load_task, task_names  # noqa: E402
from nimbus.runner.cell.transport.spec import CellSpec  # noqa: E402
from nimbus.runner.cell.worker.job import task_context  # noqa: E402
from nimbus.runner.system.threads import prepare_libraries  # noqa: E402

Figures = dict[str, Any]


def measure(name: str, episodes: int, *, attempts: int = 1, first: int = 0, skills: tuple[str, ...] = ()) -> Figures:
    """Measure the attempts at layouts ``first`` to ``first + episodes - 1`` of seed 0."""
    from nimbus.datagen.execute.planner import SkillPlanner
    from nimbus.datagen.load.scene_loader import UsdSceneLoader, assets_of
    from nimbus.datagen.randomize.tabletop import TabletopRandomizer

    task = load_task(name, skill_folders=skills)
    context = task_context(CellSpec(folder="", task=name, skills=skills), task, load_pipeline(task.pipeline))
    planner = SkillPlanner(task, attempts=attempts)
    chain = Chain([UsdSceneLoader(task, assets_of(context)), TabletopRandomizer(task, 0), planner])
    tried: list[Planned] = []
    begin = time.process_time()
    with chain:
        for item in chain.run(Request(index=index) for index in range(first, first + episodes)):
            tried.append(item)
            outcome = item.trajectory.outcome
            sys.stderr.write(f"{item.label}: {outcome.phase} {outcome.reason} {outcome.detail}\n")
    seconds = time.process_time() - begin
    stored = [item.trajectory for item in tried if item.trajectory.outcome.success]
    failures = [item.trajectory.outcome for item in tried if not item.trajectory.outcome.success]
    depths = {
        what: max((1e3 * float(item.contacts[what].max(initial=0.0)) for item in stored), default=0.0)
        for what in ("held_penetration", "table_penetration")
    }
    creep = max((1e3 * largest_creep(item.contacts["held_slip"], rate=item.rate) for item in stored), default=0.0)
    return {
        "first attempts that succeed": np.mean([item.trajectory.outcome.success for item in tried if not item.attempt]),
        "episodes stored": len(stored) / episodes,
        "CPU per episode [s]": seconds / episodes,
        "length of an episode [s]": float(np.median([item.step_count / item.rate for item in stored] or [0.0])),
        "held penetration, largest [mm]": depths["held_penetration"],
        "table penetration, largest [mm]": depths["table_penetration"],
        "creep in the hand, largest [mm/s]": creep,
        "failures": dict(Counter(f"{outcome.phase}: {outcome.reason}" for outcome in failures).most_common()),
    }


def main() -> None:
    """Measure the requested tasks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", metavar="TASK", help="names or paths of tasks")
    parser.add_argument("--episodes", type=int, default=40)
    parser.add_argument("--attempts", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="index of the first layout")
    parser.add_argument("--skills", action="append", default=[], help="folder with additional skills")
    parser.add_argument("--json", type=Path, help="JSON file; figures of other tasks in it are kept")
    args = parser.parse_args()
    prepare_libraries()
    sys.stdout.write(
        f"{'task':<24} {'first':>6} {'stored':>6} {'CPU':>6} {'long':>6} {'held':>6} {'table':>6} {'creep':>6}\n"
    )
    for name in args.tasks or task_names():
        figures = measure(name, args.episodes, attempts=args.attempts, first=args.first, skills=tuple(args.skills))
        share, stored, *rest = (value for value in figures.values() if not isinstance(value, dict))
        row = " ".join(f"{value:6.2f}" for value in rest)
        sys.stdout.write(f"{Path(name).stem:<24} {share:6.0%} {stored:6.0%} {row}\n")
        for failure, count in figures["failures"].items():
            sys.stdout.write(f"    {count:3} {failure}\n")
        sys.stdout.flush()
        if args.json:
            known = json.loads(args.json.read_text()) if args.json.exists() else {}
            args.json.write_text(json.dumps(known | {Path(name).stem: figures}, indent=2) + "\n")


if __name__ == "__main__":
    main()
