"""Success of stored actions as a policy in the environment of an evaluation.

Run it as ``python benchmarks/replays.py [TASK ...] [--episodes N] --out DIR``; without a task, ten shipped tasks are
tested, among them tasks with two arms, jointed objects and a conveyor. Nothing is rendered. The row of a task has three
numbers of episodes: those that succeed with the executed actions, those among them whose states are equal to the bit,
and those that succeed with the recorded actions, which have no noise. Existing folders are continued. The exit code is
1 if the fractions are below 100, 100 and 98 %.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "exts/nimbus.datagen")]

from nimbus.datagen.store.episode_file.read import EpisodeFile  # noqa: E402
from nimbus.runner.cli import main as nimbus  # noqa: E402
from nimbus.runner.evaluation.results import read_evaluation  # noqa: E402

TASKS = (
    *("pick_and_place", "stack_blocks", "slide_block", "rotate_block"),
    *("open_drawer", "turn_knob", "close_laptop", "conveyor_pick"),
    *("handover_block", "hold_and_stack"),
)
_RECORDED_GOAL = 0.98


def main() -> int:
    """Make episodes, replay them with both kinds of actions, and print a row for each task."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", default=TASKS)
    parser.add_argument("--episodes", type=int, default=6)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    rows = np.array([try_task(task, args.out, episodes=args.episodes) for task in args.tasks])
    lines = [f"| {task} | {' | '.join(map(str, row))} |" for task, row in zip(args.tasks, rows, strict=True)]
    stored, executed, equal, recorded = rows.sum(axis=0)
    total = f"| all | {stored} | {executed} | {equal} | {recorded} |"
    head = "| task | episodes | executed | states equal | recorded |\n|---|---|---|---|---|"
    sys.stdout.write("\n".join((head, *lines, total)) + "\n")
    return 0 if executed == equal == stored and recorded >= _RECORDED_GOAL * stored else 1


def try_task(task: str, out: Path, *, episodes: int) -> tuple[int, int, int, int]:
    """Make episodes of a task and replay them.

    Returns:
        Number of episodes, of those that succeed with the executed actions, of those whose states are equal to the bit,
        and of those that succeed with the recorded actions.
    """
    data = out / task
    nimbus(["run", "--task", task, "--episodes", str(episodes), "--images", "none", "--serial", "--out", str(data)])
    done: list[int] = []
    for actions in ("executed", "recorded"):
        folder = out / f"{task}-{actions}"
        words = ("--actions", actions, "--layouts", f"train:{data}", "--serial", "--videos", "0", "--out", str(folder))
        nimbus(["evaluate", task, "--policy", f"replay:{data}", *words])
        done.append(read_evaluation(folder).success_count)
    stored = sorted((data / "episodes").glob("*.hdf5"))
    equal = sum(has_equal_states(path, out / f"{task}-executed" / "episodes" / path.name) for path in stored)
    return len(stored), done[0], equal, done[1]


def has_equal_states(path: Path, replayed: Path) -> bool:
    """Compare the joint positions of an episode with those of its replay, which ends at success."""
    if not replayed.is_file():
        return False
    with EpisodeFile(path) as one, EpisodeFile(replayed) as other:
        count = min(one.step_count, other.step_count)
        first, second = (episode.array("observations/qpos")[:count] for episode in (one, other))
        return np.array_equal(first, second)


if __name__ == "__main__":
    sys.exit(main())
