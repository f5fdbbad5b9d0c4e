"""Comparison of the yield that the doctor expects with the measured yield, a row per task.

Run it as ``python benchmarks/doctor.py [TASK ...] [--examine]``; the measured yields are the records of
``task_table.py``. The doctor attempts the first layouts of the table in the same way as the table does. Its probes are
therefore read from the records, unless ``--examine`` makes the doctor run them. The last column excludes the probes
from the measured yield.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "exts/nimbus.datagen"))
os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

from nimbus.datagen.doctor.case import LAYOUTS  # noqa: E402
from nimbus.datagen.doctor.examine import examine  # noqa: E402
from nimbus.datagen.doctor.forecast import BUDGET, LEAST, expected_rate  # noqa: E402
from nimbus.runner.system.threads import prepare_libraries  # noqa: E402

Records = list[dict[str, Any]]

RECORDS = ROOT / "benchmarks/task_table.json"
WITHIN = 0.1
ENOUGH = 5
"""Smallest number of attempts outside of the probes for which their yield is shown."""


def probed(name: str, records: Records, *, anew: bool) -> tuple[int, int]:
    """Return the number of attempts that the doctor makes, and of those that succeed."""
    if anew:
        told = examine(name).forecast
        return (told.probes, told.successes) if told else (0, 0)
    spent, made = 0.0, 0
    for record in records[:LAYOUTS]:
        if made >= LEAST and spent > BUDGET:
            break
        spent, made = spent + record["cpu_s"], made + 1
    return made, sum(record["success"] for record in records[:made])


def share(records: Records) -> float:
    """Return the fraction of attempts that succeed."""
    return sum(record["success"] for record in records) / len(records)


def main() -> None:
    """Compare the measured tasks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", metavar="TASK", help="names of tasks (default: all measured tasks)")
    parser.add_argument("--examine", action="store_true", help="let the doctor attempt its layouts again")
    args = parser.parse_args()
    if args.examine:
        prepare_libraries()
    known = {
        name: [rows[index] for index in sorted(rows, key=int)] for name, rows in json.loads(RECORDS.read_text()).items()
    }
    near, apart = [], []
    sys.stdout.write(f"{'task':<20} {'measured':>11} {'expected':>8} {'probes':>7}  without the probes\n")
    for name in args.tasks or known:
        records = known[name]
        made, good = probed(name, records, anew=args.examine)
        told, rest = expected_rate(good, made), records[made:]
        near.append(abs(told - share(records)) <= WITHIN)
        row = f"{name:<20} {f'{share(records):.0%} of {len(records)}':>11} {told:8.0%} {f'{good}/{made}':>7}"
        if len(rest) >= ENOUGH:
            apart.append(abs(told - share(rest)) <= WITHIN)
            row += f"  {share(rest):.0%} of {len(rest)}"
        sys.stdout.write(row + ("" if near[-1] else "  FAR") + "\n")
    points = f"within {WITHIN * 100:.0f} points"
    sys.stdout.write(f"{sum(near)} of {len(near)} {points}; without the probes {sum(apart)} of {len(apart)}\n")


if __name__ == "__main__":
    main()
