"""The chaos suite: ``python tools/chaos/run.py [--faults N] [--episodes N] [--seed S] [--json FILE] [--short]``.

It runs every scenario and prints a row for each; the exit code is 1 if a scenario failed. With ``--json``, a
scenario that the file already contains with the same seed and size is not run again. ``--page`` writes the table of
that file into docs/reliability.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "exts/nimbus.datagen"), str(ROOT)]
os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

from tools.chaos import bad, inside, outside, pace, page, physical, processes  # noqa: E402
from tools.chaos.lab import Lab, Result  # noqa: E402

SCENARIOS = (
    inside.components,
    inside.slow,
    inside.leak,
    inside.goodput,
    outside.failpoints,
    outside.everything,
    outside.pauses,
    outside.hung,
    bad.full_disk,
    bad.memory,
    bad.damage,
    bad.interrupts,
    bad.second_run,
    physical.physics,
)
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LONG = (inside.goodput,)
"""Scenarios that a short run omits, because it is too short to measure them."""


def main() -> int:
    """Run the requested scenarios; SIGTERM and the closing of the terminal end them like Ctrl-C."""
    for number in _ENDING:
        signal.signal(number, signal.default_int_handler)
    try:
        return _main()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; all started runs have ended\n")
        return 130


def _main() -> int:
    args = _arguments()
    report = _read(args)
    folder = Path(tempfile.mkdtemp(prefix="nimbus-chaos-", dir=args.work))
    lab = Lab(folder=folder, seed=args.seed, episodes=args.episodes, faults=args.faults, short=args.short)
    try:
        for scenario in SCENARIOS:
            name = scenario.__name__
            if (
                (args.short and scenario in LONG)
                or (args.only and name not in args.only)
                or name in report["scenarios"]
            ):
                continue
            result = _run(scenario, lab)
            report["scenarios"][name] = result.to_plain()
            sys.stdout.write(_line(result) + "\n")
            sys.stdout.flush()
            if args.json:
                args.json.parent.mkdir(parents=True, exist_ok=True)
                args.json.write_text(json.dumps(report, indent=1) + "\n")
    finally:
        with _undisturbed():
            if args.keep:
                sys.stdout.write(f"kept: {folder}\n")
            else:
                shutil.rmtree(folder, ignore_errors=True)
    sys.stdout.write(page.table(report) + "\n")
    if args.page:
        page.write(ROOT / "docs" / "reliability.md", report)
    return 0 if all(result["is_good"] for result in report["scenarios"].values()) else 1


def _run(scenario: Callable[[Lab], Result], lab: Lab) -> Result:
    """Run one scenario, then kill the processes that it has left."""
    try:
        with pace.printing_progress(scenario.__name__, lab.folder):
            return scenario(lab)
    except Exception as error:
        traceback.print_exc()
        return Result(name=scenario.__name__, failed=[f"{type(error).__name__}: {error}"])
    finally:
        with _undisturbed():
            processes.clear(lab.folder)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Block further signals while the started runs are ended."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", type=int, default=1000, help="approximate number of injected faults (1000)")
    parser.add_argument("--episodes", type=int, default=1000, help="number of episodes of the longest scenario (1000)")
    parser.add_argument("--seed", type=int, default=0, help="seed of all random choices (0)")
    parser.add_argument("--json", type=Path, help="file for the results")
    parser.add_argument("--page", action="store_true", help="write the table into docs/reliability.md")
    parser.add_argument("--short", action="store_true", help="run a small suite of about a minute")
    parser.add_argument("--only", nargs="*", help="names of the scenarios to run")
    parser.add_argument("--work", type=Path, help="working folder (default: a temporary one)")
    parser.add_argument("--keep", action="store_true", help="keep the runs' folders")
    return parser.parse_args()


def _read(args: argparse.Namespace) -> dict[str, Any]:
    """Read the report of an earlier call with the same arguments."""
    asked = {name: getattr(args, name) for name in ("faults", "episodes", "seed", "short")}
    if args.json and args.json.exists() and (known := json.loads(args.json.read_text()))["asked"] == asked:
        return known
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    machine = f"{_processor()}, {len(os.sched_getaffinity(0))} cores, Linux {platform.release().split('-')[0]}"
    return {
        "asked": asked,
        "date": time.strftime("%Y-%m-%d"),
        "commit": commit.stdout.strip(),
        "machine": machine,
        "python": platform.python_version(),
        "scenarios": {},
    }


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine())


def _line(result: Result) -> str:
    count = sum(row["injected"] for row in result.faults.values())
    words = [f"{result.name}: {count} faults, {result.episodes} episodes, {result.wall_seconds:.0f} s"]
    words += [f"{name} {value:g}" for name, value in result.figures.items()]
    words.append(result.skipped and f"SKIPPED: {result.skipped}" or ("good" if result.is_good else "BROKEN"))
    lines = [", ".join(words)]
    lines += [f"  {line}" for line in result.failed]
    lines += [f"  {name}: {str(found)[:300]}" for name, found in result.findings.problems.items()]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
