"""Compares PhysX's path with MuJoCo on shipped tasks: ``python -m benchmarks.physx_tasks [--layouts N] [TASK ...]``.

Isaac Sim is played: MuJoCo answers its calls with a model that is built from the open stage alone. The figure says
whether every skill runs through these calls and ends as by default; it says nothing of PhysX itself.
"""

from __future__ import annotations

import argparse
import sys
import time
from functools import partial

from nimbus.datagen.execute.planner import run_attempt
from nimbus.datagen.files.scene_files import scene_names
from nimbus.datagen.load.engines import find_unsupported_task
from nimbus.datagen.load.scene_loader import load_assets
from nimbus.datagen.random_streams import generator
from nimbus.datagen.randomize.tabletop import draw_physical
from nimbus.datagen.simulate.isaacsim import IsaacSimSimulation
from nimbus.datagen.simulate.newton import NewtonSimulation
from nimbus.datagen.tasks.plugins import discover, discover_components
from nimbus.datagen.tasks.task import Task, load_any_task
from tests.support.played_physics import played_physics


def compare(task: Task, *, layouts: int) -> list[tuple[bool, bool]]:
    """Return the success of the first attempt in MuJoCo and through PhysX's path, for each layout."""
    assets = load_assets(task)
    found = []
    for index in range(layouts):
        layout = draw_physical(task, assets, seed=0, index=index)
        outcomes = []
        for kind in (NewtonSimulation, IsaacSimSimulation):
            begin = time.process_time()
            with played_physics():
                simulation = kind(assets.stage, assets.robot, rate=task.rate)
                streams = partial(generator, 0, index, "attempt", 0)
                outcome = run_attempt(task, simulation, layout, streams=streams, planner="ompl").outcome
            seconds = time.process_time() - begin
            text = "success" if outcome.success else f"{outcome.reason}: {outcome.detail}"
            sys.stdout.write(f"{task.name:22} {index} {kind.__name__:18} {seconds:5.1f} s  {text}\n")
            sys.stdout.flush()
            outcomes.append(outcome.success)
        found.append((outcomes[0], outcomes[1]))
    return found


def main() -> int:
    """Print each attempt, and the fraction that ended alike; 1 below 95 %."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="*", metavar="TASK")
    parser.add_argument("--layouts", type=int, default=2, metavar="N")
    args = parser.parse_args()
    discover_components()
    discover()
    found: list[tuple[bool, bool]] = []
    for name in args.tasks or scene_names("tasks"):
        task = load_any_task(name)
        if why := find_unsupported_task(task):
            sys.stdout.write(f"{name:22} not run: {why}\n")
        elif isinstance(task, Task):
            found += compare(task, layouts=args.layouts)
    alike = sum(one == two for one, two in found)
    default, physx = (sum(row[engine] for row in found) for engine in (0, 1))
    sys.stdout.write(f"{alike} of {len(found)} attempts end alike; successes: {default} and {physx}\n")
    return 0 if found and alike >= 0.95 * len(found) else 1


if __name__ == "__main__":
    sys.exit(main())
