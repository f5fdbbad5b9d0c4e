"""Spread of releases: differences between demonstrations of one layout with different random streams.

Run it as ``python benchmarks/release_spread.py [TASK ...] [--layouts N] [--first N] [--times N]``; without a task, it
measures all shipped tasks that move an object to a goal, and ``--list`` prints their names. Each layout is attempted
several times with different streams; nothing is rendered. Each row describes the beginning of one phase of a task. For
each layout, the largest distance between hand positions is computed; the row has the maximum and the median over all
layouts, and lists the layouts beyond the limit. A choice that does not depend on an observation should not vary by more
than 1 cm. A task file can request such variation (``spread``); the position is then stored with the episode.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "exts/nimbus.datagen"))
os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

import numpy as np  # noqa: E402

from nimbus.datagen.arrays import FloatArray  # noqa: E402
from nimbus.datagen.episode.trajectory import Trajectory  # noqa: E402
from nimbus.datagen.execute.planner import run_attempt  # noqa: E402
from nimbus.datagen.load.scene_loader import load_assets  # noqa: E402
from nimbus.datagen.random_streams import generator  # noqa: E402
from nimbus.datagen.randomize.tabletop import draw_physical  # noqa: E402
from nimbus.datagen.simulate.newton import NewtonSimulation  # noqa: E402
from nimbus.datagen.tasks.plugins import discover_components  # noqa: E402
from nimbus.datagen.tasks.steps import walk  # noqa: E402
from nimbus.datagen.tasks.task import Task, load_any_task, load_task, task_names  # noqa: E402
from nimbus.runner.system.threads import prepare_libraries  # noqa: E402

SKILLS = {"place", "push", "pull", "sweep", "insert", "pour", "hang", "slide", "flip", "rotate"}
"""Skills that move an object to a goal."""
PHASES = {"grasp", "release", "pour", "insert", "push"}
"""Phases whose first row is compared."""
LIMIT = 0.01
"""[m]"""


def hand_places(trajectory: Trajectory, links: list[str]) -> dict[str, FloatArray]:
    """Return positions (A, 3) of the hands at the beginning of each phase, by skill, target, phase and count [m]."""
    found: dict[str, FloatArray] = {}
    bodies = [trajectory.body_names.index(link) for link in links]
    before: set[str] = set()
    for segment in trajectory.segments:
        phases = set(segment.phase.split("+"))  # of several arms
        begun, before = phases - before, phases
        if begun & PHASES:
            name = f"{segment.skill} {segment.target} {segment.phase}"
            count = sum(key.startswith(name) for key in found)
            found[f"{name} {count}"] = trajectory.body_positions[max(0, segment.start - 1), bodies]
    return found


def spreads(task: Task, *, layouts: range, times: int) -> Iterator[tuple[str, dict[int, float], int]]:
    """Return spreads of the hand's position by phase and layout [m], and the number of compared attempts."""
    assets = load_assets(task)
    simulation = NewtonSimulation(assets.stage, assets.robot, rate=task.rate)
    links = [arm.tool.link for arm in assets.robot.arms]
    apart: dict[str, dict[int, float]] = defaultdict(dict)
    compared = 0
    for index in layouts:
        layout = draw_physical(task, assets, seed=0, index=index)
        places: dict[str, list[FloatArray]] = defaultdict(list)
        for time in range(times):
            streams = partial(generator, 1000 + time, index, "attempt", 0)
            trajectory = run_attempt(task, simulation, layout, streams=streams, planner="ompl")
            if trajectory.outcome.success:
                compared += 1
                for name, place in hand_places(trajectory, links).items():
                    places[name].append(place)
        for name, some in places.items():
            all_places = np.array(some)
            between = np.linalg.norm(all_places[:, None] - all_places[None], axis=-1)
            apart[name][index] = float(between.max())
    for name, values in apart.items():
        yield name, values, compared


def covered_tasks() -> list[str]:
    """List the shipped tasks that move an object to a goal."""
    tasks = {name: task for name in task_names() if isinstance(task := load_any_task(name), Task)}
    return [name for name, task in tasks.items() if not SKILLS.isdisjoint(step.name for step, _ in walk(task.steps))]


def main() -> int:
    """Print a row for each phase; return 1 if any spread exceeds the limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", metavar="TASK", help="names or paths of tasks")
    parser.add_argument("--layouts", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="index of the first layout")
    parser.add_argument("--times", type=int, default=6)
    parser.add_argument("--list", action="store_true", help="only print the names of the tasks")
    args = parser.parse_args()
    discover_components()
    names = args.tasks or covered_tasks()
    if args.list:
        sys.stdout.write("\n".join(names) + "\n")
        return 0
    prepare_libraries()
    layouts, worst = range(args.first, args.first + args.layouts), 0.0
    sys.stdout.write(f"{'task':<20} {'skill, target, phase':<36} {'largest':>9} {'median':>9}  attempts\n")
    for name in names:
        task = load_task(name)
        for phase, by_layout, compared in spreads(task, layouts=layouts, times=args.times):
            values = list(by_layout.values())
            largest, median = 100 * max(values), 100 * float(np.median(values))
            over = [index for index, value in by_layout.items() if value > LIMIT]
            mark = f"  * layouts {', '.join(map(str, over))}" if over else ""
            sys.stdout.write(f"{name:<20} {phase:<36} {largest:6.2f} cm {median:6.2f} cm  {compared}{mark}\n")
            sys.stdout.flush()
            worst = max(worst, *values)
    return int(worst > LIMIT)


if __name__ == "__main__":
    raise SystemExit(main())
