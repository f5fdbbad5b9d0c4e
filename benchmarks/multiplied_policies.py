"""Policies from multiplied demonstrations and from scripted ones, compared on the same held-out layouts.

    python benchmarks/multiplied_policies.py --out out/policies [--demos 5] [--episodes 200] [--layouts 100]

A scripted operator (``tests/support/shown_tasks``) shows docs/examples/cube_to_goal.yaml through the teleoperation
input. ``nimbus multiply`` makes episodes from these demonstrations, ``nimbus run`` makes as many with scripted skills.
A policy on states is trained on each set with the same settings. Existing folders in ``--out`` are continued.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "exts/nimbus.datagen")]

from nimbus.datagen.policies.perceptron import TrainingSettings  # noqa: E402
from nimbus.runner.cli import main as nimbus  # noqa: E402
from nimbus.runner.evaluation.results import read_evaluation  # noqa: E402
from nimbus.runner.evaluation.training_log import train_on  # noqa: E402
from nimbus.runner.system.output import write_out  # noqa: E402
from tests.support.shown_tasks import show  # noqa: E402

TASK = str(ROOT / "docs/examples/cube_to_goal.yaml")
MOST_LOST = 0.10
"""Largest difference between the two rates of success."""


def success(data: Path, folder: Path, *, layouts: int, how: list[str]) -> float:
    """Train a policy on a dataset; return its rate of success on held-out layouts of the task.

    Args:
        data: Folder of the dataset.
        folder: Folder of policy and evaluation.
        layouts: Number of held-out layouts.
        how: Flags with the number of workers.
    """
    policy, result = folder / "policy", folder / "evaluation"
    train_on(data, policy, settings=TrainingSettings())
    words = ["evaluate", TASK, "--policy", str(policy), "--layouts", str(layouts), "--videos", "0"]
    nimbus([*words, "--out", str(result), *how])
    found = read_evaluation(result)
    return found.success_count / len(found.judged)


def run() -> int:
    """Make both sets, train and evaluate; return 0 if the policies are about equally good."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--demos", type=int, default=5)
    parser.add_argument("--episodes", type=int, default=200)
    parser.add_argument("--layouts", type=int, default=100)
    parser.add_argument("--workers")
    given = parser.parse_args()
    how = ["--workers", given.workers] if given.workers else ["--serial"]
    shown, sets = given.out / "shown", {name: given.out / name for name in ("multiplied", "scripted")}
    count = ["--episodes", str(given.episodes), "--images", "none"]
    if not shown.exists():
        show(TASK, shown, count=given.demos)
    nimbus(["demonstrate", TASK, "--images", "none", "--serial", "--out", str(shown)])
    nimbus(["multiply", str(shown), "--task", TASK, *count, "--out", str(sets["multiplied"]), *how])
    nimbus(["run", "--task", TASK, *count, "--out", str(sets["scripted"]), *how])
    rates = {
        name: success(data, given.out / f"{name}_policy", layouts=given.layouts, how=how) for name, data in sets.items()
    }
    (given.out / "rates.json").write_text(json.dumps(rates, indent=1))
    for name, rate in rates.items():
        write_out(f"{name:12} {len(list((sets[name] / 'episodes').glob('*.hdf5'))):4} episodes, success {rate:.0%}\n")
    return 0 if rates["multiplied"] >= rates["scripted"] - MOST_LOST else 1


if __name__ == "__main__":
    sys.exit(run())
