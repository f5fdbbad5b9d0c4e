"""Runs the suite: ``python -m benchmarks.gpu [--device cuda|cpu] [--json FILE] [PART ...]``, as ``make gpu`` does.

A part is SKIPPED, with the reason, if it needs something that is missing; the exit status is 1 if a check fails. On a
CPU, all inputs are small, and ``physics`` and ``run`` are complete only if they are named.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks.gpu import timing
from benchmarks.gpu.result import MissingError, PartResult, State, format_table
from nimbus.datagen.errors import InputError

PARTS = ("equality", "views", "rollouts", "splats", "motion", "training", "cycles", "physics", "run")
HEADLINE = ("320x240", 3)
"""Image size and cameras of the headline."""
GOAL = 820
"""Required control frames per second on an H100 or H200."""
_OURS = ("nimbus", "benchmarks")
"""Packages of this project; a missing module of them is a bug."""


def main() -> int:
    """Run the parts, print a table, and write figures; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.gpu", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"all if none is named: {', '.join(PARTS)}")
    parser.add_argument("--device", default="cuda", help="cuda (default) or cpu")
    parser.add_argument("--json", type=Path, help="also write the figures to this JSON file")
    parser.add_argument(
        "--seconds", type=float, default=timing.SECONDS, help="shortest measured time for each figure [s]"
    )
    parser.add_argument("--absent", type=Path, help="JSON file with the reasons for missing packages, by name")
    options = parser.parse_args()
    unknown = set(options.parts) - set(PARTS)
    if unknown:
        parser.error(f"unknown part {', '.join(sorted(unknown))}; known: {', '.join(PARTS)}")
    timing.SECONDS = options.seconds
    if not os.environ.get("WARP_CACHE_PATH"):  # set on bare machines, where the next import fails
        from nimbus.datagen.files.cache import cache_folder

        os.environ["WARP_CACHE_PATH"] = str(cache_folder("warp"))  # reuses the kernels that a run compiled
    absent = json.loads(options.absent.read_text(encoding="utf-8")) if options.absent else {}
    results = {
        name: run_part(partial(_call, name, options.device, name in options.parts), absent=absent, label=name)
        for name in options.parts or PARTS
    }
    sys.stdout.write(report(results, options.device))
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(_figures(results, options.device), indent=2) + "\n", encoding="utf-8")
    return int(any(result.state is State.FAILED for result in results.values()))


def run_part(part: Callable[[], PartResult], *, absent: dict[str, str], label: str) -> PartResult:
    """Run a part; a missing package or device skips it, any other error fails it and leaves its traceback.

    Args:
        part: The part.
        absent: Reasons by package name.
        label: Name of the part, for the traceback.
    """
    start = time.perf_counter()
    try:
        result = part()
    except Exception as error:
        # The other parts still run: time on a GPU is short.
        reason = _missing(error)
        if not reason:
            sys.stderr.write(f"{label}:\n{traceback.format_exc()}")
        result = PartResult(skipped=reason, problems=() if reason else (f"{type(error).__name__}: {error}",))
    return replace(result, seconds=time.perf_counter() - start, skipped=_explained(result.skipped, absent))


def _missing(error: Exception) -> str:
    """Return the reason to skip a part: an external package or the device is missing; empty for any other error."""
    if isinstance(error, MissingError):
        return str(error)
    if isinstance(error, ModuleNotFoundError) and error.name and error.name.partition(".")[0] not in _OURS:
        return f"no package {error.name}"
    return str(error) if isinstance(error, InputError) and error.where == "--device" else ""


def report(results: dict[str, PartResult], device: str) -> str:
    """Return the tables of all parts, followed by a line with the state of each."""
    lines = [f"device {device}, {describe(device)}"]
    for name, result in results.items():
        lines += ["", name, format_table(result.rows)] if result.rows else []
    lines += ["", *headline(results)]
    for name, result in results.items():
        reasons = [*result.problems, *([f"left out: {result.skipped}"] if result.skipped and result.rows else [])]
        reasons = reasons or ([result.skipped] if result.skipped else [])
        lines.append(f"{name:10}{result.state:8}{result.seconds:7.1f} s  {'; '.join(reasons)}".rstrip())
    return "\n".join(lines) + "\n"


def headline(results: dict[str, PartResult]) -> list[str]:
    """Return the line of control frames per second: steps with three images of 320 x 240; none if not measured."""
    rows = results["views"].rows if "views" in results else ()
    found = [float(row["control_frames_per_s"]) for row in rows if (row["size"], row["cameras"]) == HEADLINE]
    return [f"control frames per second, 3 cameras of 320x240: {max(found):.0f} (goal {GOAL})"] if found else []


def describe(device: str) -> str:
    """Return the name of the device and the versions of the packages that use it."""
    try:
        import warp
    except ModuleNotFoundError:
        return f"no Warp, Python {platform.python_version()}"
    try:
        name = warp.get_device(device).name
    except (ValueError, RuntimeError):
        name = "not on this machine"
    return f"{name}, Warp {warp.__version__}, Python {platform.python_version()}"


def _call(name: str, device: str, is_asked: bool) -> PartResult:
    """Import and run a part; a missing package thus skips only this part."""
    if name == "equality":
        from benchmarks.gpu import equality

        return equality.check(device)
    if name == "views":
        from benchmarks.gpu import throughput

        return throughput.measure(device)
    if name in ("rollouts", "splats", "motion", "training", "cycles"):
        return importlib.import_module(f"benchmarks.gpu.{name}").measure(device)
    if name == "physics":
        from benchmarks.gpu import physics

        return physics.measure(device, is_asked=is_asked)
    from benchmarks.gpu import whole_run

    return whole_run.check(device, is_asked=is_asked)


def _explained(reason: str, absent: dict[str, str]) -> str:
    """Return a reason, extended by the cause if it names a missing package."""
    missing = reason.partition("no package ")[2].split(", ")
    causes = dict.fromkeys(absent[name] for name in missing if name in absent)
    return "; ".join([reason, *causes])


def _figures(results: dict[str, PartResult], device: str) -> dict[str, object]:
    parts = {
        name: {"state": result.state, "seconds": result.seconds, "skipped": result.skipped}
        | {"problems": result.problems, "rows": result.rows}
        for name, result in results.items()
    }
    return {"device": device, "described": describe(device), "parts": parts}


if __name__ == "__main__":
    sys.exit(main())
