"""Planning of episodes in lockstep: sizes of the batches of motions, and equality of each episode with the same episode
planned alone.

Run it as ``python benchmarks/batched_plans.py [--episodes N] [--compare N] [--planner reference|curobo] [--lanes 8]``.
``reference`` is the default planner with the interface for batches; ``curobo`` is the adapter with the stand-in for
cuRobo in its process. The first ``--compare`` episodes are also made one by one. Times are CPU seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "exts/nimbus.datagen"), str(ROOT)]
os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

from nimbus.datagen.execute.planner import SkillPlanner  # noqa: E402
from nimbus.datagen.load.scene_loader import UsdSceneLoader, load_assets  # noqa: E402
from nimbus.datagen.plan.curobo import process  # noqa: E402
from nimbus.datagen.randomize.tabletop import TabletopRandomizer  # noqa: E402
from nimbus.datagen.stages import Planned, Randomized, Request  # noqa: E402
from nimbus.datagen.tasks.plugins import discover_components, import_folders  # noqa: E402
from nimbus.datagen.tasks.scene_assets import SceneAssets  # noqa: E402
from nimbus.datagen.tasks.task import load_task  # noqa: E402
from tests.support import ROOT as CHECKOUT  # noqa: E402
from tests.support.same_plans import content_of  # noqa: E402

Content = dict[tuple[int, int], str]


def measure(episodes: int, planner: str, lanes: int, compare: int) -> dict[str, Any]:
    """Make the same episodes in both ways."""
    task = load_task("sort_trash")
    assets = load_assets(task)
    loader, randomizer = UsdSceneLoader(task, assets), TabletopRandomizer(task, 0)

    def layouts(count: int) -> Iterator[Randomized[SceneAssets]]:
        """Draw the layouts of the first episodes."""
        return cast(
            Iterator[Randomized[SceneAssets]], randomizer(loader(Request(index=index) for index in range(count)))
        )

    single, alone = SkillPlanner(task, planner), Content()
    begin = time.process_time()
    for layout in layouts(compare):
        for made in single.process(layout):
            alone[made.scene.request.index, made.attempt] = content_of(made)
    single_time, begin = time.process_time() - begin, time.process_time()
    stage, together = SkillPlanner(task, planner), Content()
    results: list[Planned] = []
    for made in stage.process_together(layouts(episodes), lanes=lanes, watch=lambda item, spent: None):
        together[made.scene.request.index, made.attempt] = content_of(made)
        results.append(made)
    sizes: Counter[int] = stage.batches
    return {
        "planner": planner,
        "episodes": episodes,
        "attempts": len(results),
        "stored": sum(made.trajectory.outcome.success for made in results),
        "compared": len(alone),
        "equal": sum(together.get(key) == value for key, value in alone.items()),
        "lanes": lanes,
        "queries": sum(size * count for size, count in sizes.items()),
        "batches": sum(sizes.values()),
        "mean batch": round(sum(size * count for size, count in sizes.items()) / max(1, sum(sizes.values())), 2),
        "by size": {str(size): sizes[size] for size in sorted(sizes)},
        "CPU seconds singly": round(single_time, 1),
        "CPU seconds together": round(time.process_time() - begin, 1),
    }


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=32)
    parser.add_argument("--compare", type=int, default=8)
    parser.add_argument("--planner", default="reference", choices=("reference", "curobo"))
    parser.add_argument("--lanes", type=int, default=8)
    parser.add_argument("--json", type=Path, help="write the figures to this JSON file")
    arguments = parser.parse_args()
    discover_components()
    import_folders([CHECKOUT / "tests/support/batch_planners"])
    with tempfile.TemporaryDirectory() as folder:
        python = Path(folder, "python")
        python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{CHECKOUT}/tools/contract/curobo_python.py" "$@"\n')
        python.chmod(0o755)
        os.environ[process.PYTHON] = str(python)
        found = measure(arguments.episodes, arguments.planner, arguments.lanes, arguments.compare)
    text = json.dumps(found, indent=1)
    sys.stdout.write(f"{text}\n")
    if arguments.json:
        arguments.json.write_text(text)
    sys.exit(found["equal"] < found["compared"])


if __name__ == "__main__":
    main()
