"""Compares PhysX's path with MuJoCo on shipped tasks.

Run it as ``python -m benchmarks.physx_tasks [--layouts N] [--results FILE] [TASK ...]``. A stand-in replaces Isaac Sim:
its calls are answered by MuJoCo, with a model that is built only from the open stage. The figure shows that every skill
runs through these calls with the default result; it says nothing about PhysX itself. With ``--results``, each pair of
attempts is appended to a file of JSON lines; pairs in the file are not run again.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from nimbus.datagen.execute.planner import run_attempt
from nimbus.datagen.files.scene_files import scene_names
from nimbus.datagen.load.engines import find_unsupported_task
from nimbus.datagen.load.scene_loader import load_assets
from nimbus.datagen.random_streams import generator
from nimbus.datagen.randomize.tabletop import draw_physical
from nimbus.datagen.simulate.isaacsim import IsaacSimSimulation
from nimbus.datagen.simulate.newton import NewtonSimulation, has_wide_pads
from nimbus.datagen.tasks.plugins import discover, discover_components
from nimbus.datagen.tasks.task import Task, load_any_task
from tests.support.played_physics import played_physics


@dataclass(frozen=True)
class Pair:
    """The first attempt at one layout, by MuJoCo and through PhysX's path."""

    task: str
    index: int
    default: str
    """``success``, or the reason of the failure and its detail."""
    physx: str
    seconds: tuple[float, float]
    """CPU time of the two attempts [s]."""

    @property
    def is_alike(self) -> bool:
        """True if both succeed, or both fail."""
        return (self.default == "success") == (self.physx == "success")


def compare(task: Task, *, indices: Iterable[int]) -> Iterator[Pair]:
    """Execute the first attempt at each layout twice."""
    assets = load_assets(task)
    for index in indices:
        layout = draw_physical(task, assets, seed=0, index=index)
        texts: list[str] = []
        seconds: list[float] = []
        for kind in (NewtonSimulation, IsaacSimSimulation):
            begin = time.process_time()
            with played_physics(several_points=has_wide_pads(assets.robot)):
                simulation = kind(assets.stage, assets.robot, rate=task.rate)
                streams = partial(generator, 0, index, "attempt", 0)
                outcome = run_attempt(task, simulation, layout, streams=streams, planner="ompl").outcome
            seconds.append(round(time.process_time() - begin, 1))
            texts.append("success" if outcome.success else f"{outcome.reason}: {outcome.detail}")
            sys.stdout.write(f"{task.name:22} {index} {kind.__name__:18} {seconds[-1]:5.1f} s  {texts[-1]}\n")
            sys.stdout.flush()
        yield Pair(task.name, index, texts[0], texts[1], (seconds[0], seconds[1]))


def read_results(path: Path | None) -> list[Pair]:
    """Read the pairs of an earlier run."""
    if path is None or not path.exists():
        return []
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return [Pair(**row | {"seconds": tuple(row["seconds"])}) for row in rows]


def main() -> int:
    """Print each attempt, and the fraction with equal results; return 1 if it is below 95 %."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="*", metavar="TASK")
    parser.add_argument("--layouts", type=int, default=2, metavar="N")
    parser.add_argument(
        "--results",
        type=Path,
        metavar="FILE",
        help="JSON lines file; its pairs are not run again, new ones are appended",
    )
    args = parser.parse_args()
    discover_components()
    discover()
    found = read_results(args.results)
    done = {(pair.task, pair.index) for pair in found}
    for name in args.tasks or scene_names("tasks"):
        task = load_any_task(name)
        if why := find_unsupported_task(task):
            sys.stdout.write(f"{name:22} not run: {why}\n")
            continue
        left = [index for index in range(args.layouts) if (task.name, index) not in done]
        if not isinstance(task, Task) or not left:
            continue
        for pair in compare(task, indices=left):
            found.append(pair)
            if args.results:
                with args.results.open("a") as file:
                    file.write(f"{json.dumps(asdict(pair))}\n")
    alike = sum(pair.is_alike for pair in found)
    default = sum(pair.default == "success" for pair in found)
    physx = sum(pair.physx == "success" for pair in found)
    sys.stdout.write(f"{alike} of {len(found)} attempts end alike; successes: {default} and {physx}\n")
    return 0 if found and alike >= 0.95 * len(found) else 1


if __name__ == "__main__":
    sys.exit(main())
