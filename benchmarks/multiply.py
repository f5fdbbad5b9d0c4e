"""Multiplication of teleoperated demonstrations: yield of every task at new layouts.

    python benchmarks/multiply.py --out out/multiply [--tasks insert_peg,open_drawer] [--demos 5] [--episodes 20]

A scripted operator (``tests/support/shown_tasks``) performs each task through the teleoperation input at the speed of a
person, with trembling, lost periods and pauses, and without planning. ``nimbus demonstrate`` records its episodes,
which have no skill labels. ``nimbus multiply`` makes new ones from them, and ``nimbus certify`` replays the new ones.
The yield is the fraction of layouts with a stored episode; each layout gets up to three attempts. The success of first
attempts is listed as well.
"""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import closing
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "exts/nimbus.datagen")]

from nimbus.datagen.store.ledger.ledger import Ledger  # noqa: E402
from nimbus.datagen.tasks.task import task_names  # noqa: E402
from nimbus.runner.cli import main  # noqa: E402
from nimbus.runner.system.output import write_out  # noqa: E402
from tests.support.shown_tasks import SHOWS, show  # noqa: E402

LEAST, LEAST_MEAN = 0.6, 0.75
"""Smallest yield of each task, and of the mean of all tasks."""


def measure(task: str, folder: Path, *, demos: int, episodes: int, workers: str | None) -> dict[str, object]:
    """Show a task, multiply, and return the yield.

    Args:
        task: Name of a shipped task.
        folder: Folder of all files.
        demos: Number of demonstrations.
        episodes: Number of new layouts.
        workers: Planners and renderers; None for one process.
    """
    how = ["--workers", workers] if workers else ["--serial"]
    shown, many = folder / f"shown_{task}", folder / f"many_{task}"
    discarded = show(task, shown, count=demos)
    main(["demonstrate", task, "--images", "none", "--serial", "--out", str(shown)])
    words = ["multiply", str(shown), "--task", task, "--episodes", str(episodes), "--images", "none"]
    main([*words, "--seed", "1000", "--out", str(many), *how])
    certified = main(["certify", str(many)]) == 0
    with closing(Ledger(many, read_only=True)) as ledger:
        attempts = list(ledger.attempts())
    layouts = {attempt.idx for attempt in attempts}
    stored = {attempt.idx for attempt in attempts if attempt.success}
    first = [attempt for attempt in attempts if attempt.attempt == 0]
    reasons: dict[str, int] = {}
    for attempt in attempts:
        if not attempt.success:
            reasons[str(attempt.reason)] = reasons.get(str(attempt.reason), 0) + 1
    return {
        "task": task,
        "demonstrations": len(list((shown / "episodes").glob("*.hdf5"))),
        "discarded": len(discarded),
        "layouts": len(layouts),
        "yield": round(len(stored) / max(len(layouts), 1), 3),
        "first": round(sum(attempt.success for attempt in first) / max(len(first), 1), 3),
        "reasons": reasons,
        "certified": certified,
    }


def run() -> int:
    """Measure the tasks; return 0 if the yields are reached."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tasks", default=",".join(name for name in SHOWS if name in task_names()))
    parser.add_argument("--demos", type=int, default=5)
    parser.add_argument("--episodes", type=int, default=20)
    parser.add_argument("--workers")
    given = parser.parse_args()
    found = []
    for task in given.tasks.split(","):
        found.append(measure(task, given.out, demos=given.demos, episodes=given.episodes, workers=given.workers))
        (given.out / "yields.json").write_text(json.dumps(found, indent=1))
    for row in found:
        shares = f"yield {row['yield']:.0%}, first {row['first']:.0%}"
        figures = f"{row['demonstrations']} shown, {row['layouts']:3} layouts, {shares}"
        write_out(f"{row['task']:22} {figures}  {row['reasons']}, certified: {row['certified']}\n")
    yields = [float(str(row["yield"])) for row in found]
    mean = sum(yields) / len(yields)
    write_out(f"mean yield {mean:.0%}, least {min(yields):.0%}; required are {LEAST_MEAN:.0%} and {LEAST:.0%}\n")
    return 0 if mean >= LEAST_MEAN and min(yields) >= LEAST else 1


if __name__ == "__main__":
    sys.exit(run())
