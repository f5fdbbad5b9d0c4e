"""What the doctor expects against what was measured: a row a task, and how many are within ten points.

Run it as ``python tests/benchmarks/doctor.py MEASURED.json [TASK ...]``; the file is what ``tests/benchmarks/tasks.py
--json`` writes. Times are CPU seconds of one core.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "exts/nimbus.datagen"))
os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

from nimbus.datagen.doctor.examine import examine  # noqa: E402
from nimbus.runner.libraries import prepare_libraries  # noqa: E402

WITHIN = 0.1


def main() -> None:
    """Examine the tasks that were measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measured", type=Path)
    parser.add_argument("tasks", nargs="*", metavar="TASK", help="names; all that were measured when not given")
    args = parser.parse_args()
    prepare_libraries()
    measured = json.loads(args.measured.read_text())
    near = []
    sys.stdout.write(f"{'task':<24} {'measured':>8} {'expected':>8} {'probes':>7} {'CPU':>6}  findings\n")
    for name in args.tasks or measured:
        diagnosis = examine(name)
        told, found = diagnosis.forecast, measured[name]["first attempts that succeed"]
        expected = told.success_rate if told else 0.0
        probes = f"{told.successes}/{told.probes}" if told else "-"
        near.append(abs(expected - found) <= WITHIN)
        seconds = sum(diagnosis.seconds.values())
        row = f"{name:<24} {found:8.0%} {expected:8.0%} {probes:>7} {seconds:6.1f}  {len(diagnosis.findings)}"
        sys.stdout.write(row + "\n")
        sys.stdout.flush()
    sys.stdout.write(f"{sum(near)} of {len(near)} within {WITHIN * 100:.0f} points\n")


if __name__ == "__main__":
    main()
