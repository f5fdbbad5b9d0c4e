"""State-based policies trained on demonstrations of tasks, and the section about them in docs/task-table.md.

Run it as ``python benchmarks/task_policies.py [TASK ...] --out DIR [--episodes N] [--layouts N]``; without a task, it
measures those of ``TASKS``. Each task is one run of ``nimbus close-the-loop``: it makes demonstrations without images,
trains a policy, and compares the policy's success on held-out layouts with the demonstrator's. Existing folders in DIR
are continued. Records are in ``benchmarks/task_policies.json``; ``benchmarks/task_table.py --episodes 0`` writes the
page.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "exts/nimbus.datagen")]
os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

from nimbus.datagen.policies.perceptron import TrainingSettings  # noqa: E402
from nimbus.runner.cli import main as nimbus  # noqa: E402
from nimbus.runner.evaluation.results import Evaluation, read_evaluation  # noqa: E402

RECORDS = ROOT / "benchmarks/task_policies.json"
TASKS = ("slide_block", "conveyor_pick", "wipe_table", "turn_knob", "insert_peg", "stack_blocks", "near_block")
"""Tasks of seven families."""
_HEAD = """
## Policies trained on the demonstrations

Each policy sees states and was trained by `nimbus close-the-loop TASK`. The table shows the number of training steps,
its success on held-out layouts, the interval at 95 %, and the success of the demonstrator on the same layouts with one
attempt each. `benchmarks/task_policies.py` measures it.

| task | demonstrations | steps | policy | interval | demonstrator | most frequent failures |
|---|---|---|---|---|---|---|
"""


def measure(task: str, out: Path, *, episodes: int, layouts: int) -> dict[str, Any]:
    """Run ``close-the-loop`` for a task; return the figures of its row."""
    folder = out / Path(task).stem
    words = ["close-the-loop", task, "--episodes", str(episodes), "--layouts", str(layouts), "--videos", "0"]
    if code := nimbus([*words, "--workers", "1x1", "--out", str(folder)]):
        raise SystemExit(code)
    found, demonstrator = read_evaluation(folder / "evaluation"), read_evaluation(folder / "demonstrator")
    return {
        "demonstrations": episodes,
        "steps": TrainingSettings().steps,
        "success": found.success_count,
        "of": len(found.judged),
        "interval": [round(value, 3) for value in found.interval],
        "demonstrator": demonstrator.success_count,
        "demonstrator_of": len(demonstrator.judged),
        "failures": _failures(found),
    }


def _failures(found: Evaluation) -> dict[str, int]:
    """Count failed layouts by the missing condition, the most frequent first."""
    details = Counter(one.detail.split(":")[0] or one.reason for one in found.judged if not one.success)
    return dict(details.most_common(2))


def section(records: dict[str, dict[str, Any]]) -> str:
    """Return the part of the page, with a row per task."""
    rows = []
    for task, found in sorted(records.items(), key=lambda entry: -entry[1]["success"] / entry[1]["of"]):
        low, high = (round(100 * value) for value in found["interval"])
        cells = (
            f"`{task}`",
            found["demonstrations"],
            f"{found['steps']:,}",
            f"{found['success']} of {found['of']}",
            f"{low}–{high} %",
            f"{found['demonstrator']} of {found['demonstrator_of']}",
            ", ".join(f"{count} {why}" for why, count in found["failures"].items()),
        )
        rows.append(f"| {' | '.join(map(str, cells))} |\n")
    return _HEAD + "".join(rows)


def main() -> None:
    """Measure tasks and store their records."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", default=TASKS)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--episodes", type=int, default=200)
    parser.add_argument("--layouts", type=int, default=50)
    args = parser.parse_args()
    records = json.loads(RECORDS.read_text()) if RECORDS.exists() else {}
    for task in args.tasks:
        records[Path(task).stem] = measure(task, args.out, episodes=args.episodes, layouts=args.layouts)
        RECORDS.write_text(json.dumps(records, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
