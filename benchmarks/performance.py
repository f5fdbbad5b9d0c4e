"""Performance of this checkout compared with the commit in ``benchmarks/baseline``, in turns on one machine.

Run it as ``python benchmarks/performance.py [--part PART ...] [--turns N] [--json FILE] [--write]``. The parts:

- ``episodes``: CPU seconds of one more stored episode, and stored demonstrations per hour, for two tasks or for those
  named by ``--task``. The costs of two runs of different lengths are subtracted, so starting, compiling and loading are
  excluded. Demonstrations per hour are computed from the CPU seconds, as if all cores were busy. The wall time is not
  used, because it depends on other work; the load is stated. The demonstrations of the two checkouts may differ in
  length, so their steps are counted, too.
- ``views``: CPU milliseconds of a view of 64 consecutive rows of an episode (``views.py``).
- ``growth``: the same for increasing numbers of objects, pixels and cameras, with this checkout alone.
- ``opengl``: views against MuJoCo's OpenGL renderer (``rendering.py``).
- ``robosuite``: rgb views against robosuite 1.5, whose Python ``NIMBUS_ROBOSUITE_PYTHON`` names.

The baseline is checked out and installed into ``build/baseline-COMMIT`` once. A part that cannot run is SKIPPED, with
a reason. ``--write`` makes ``docs/performance.md`` from all figures in ``--json``, including those of earlier runs.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT)]

from benchmarks import performance_page  # noqa: E402

OBJECTS = (0, 8, 32)
"""Numbers of objects of 1,000 to 1,300 faces that are added to the table."""
LENGTHS = {"sort_trash": (2, 6), "pick_and_place": (4, 16)}
"""Numbers of episodes in the short and in the long run of a task."""
SIZES = ("160x120", "320x240", "640x480", "1280x720")


class Skipped(Exception):
    """Raised if a part cannot run on this machine; the message is the reason."""


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Resources of a process with all its children."""

    cpu: float
    """[s]"""
    wall: float
    """[s]"""
    steps: int = 0
    """Number of recorded steps of the stored episodes."""


def run_timed(command: list[str], folder: Path) -> Cost:
    """Run a command in a folder and measure it.

    Raises:
        RuntimeError: The command failed; the message ends with its last lines.
    """
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603
    after, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic() - start
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr[-600:]}")
    return Cost(cpu=after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall=wall)


def cost_of_episodes(checkout: Path, task: str, *, short: int, long: int) -> Cost:
    """Return the cost of one more stored episode, the difference between a long and a short run."""

    def make(episodes: int) -> Cost:
        with tempfile.TemporaryDirectory() as folder:
            data = Path(folder) / "data"
            words = ["--task", task, "--episodes", str(episodes), "--seed", "3", "--out", str(data)]
            cost = run_timed([str(checkout / ".venv/bin/python"), "runner/runner.py", *words], checkout)
            return replace(cost, steps=count_steps(data))

    few, many = make(short), make(long)
    more = long - short
    return Cost(
        cpu=(many.cpu - few.cpu) / more, wall=(many.wall - few.wall) / more, steps=(many.steps - few.steps) // more
    )


def count_steps(data: Path) -> int:
    """Count the recorded steps of all stored episodes of a dataset of any version."""
    import h5py

    found = 0
    for path in (data / "episodes").rglob("*.hdf5"):
        with h5py.File(path) as file:
            moments: Any = file["time"]
            found += len(moments)
    return found


def measure_episodes(baseline: Path, turns: int, tasks: Sequence[str] = tuple(LENGTHS)) -> dict[str, Any]:
    """Measure runs of both checkouts in turns."""
    found: dict[str, Any] = {}
    for task in tasks:
        short, long = LENGTHS[task]
        costs = [
            [cost_of_episodes(checkout, task, short=short, long=long) for checkout in (baseline, ROOT)]
            for _ in range(turns)
        ]
        for column, name in enumerate(("baseline", "now")):
            cpu = statistics.median(turn[column].cpu for turn in costs)
            steps = costs[0][column].steps  # the same seed makes the same episodes
            per_hour = 3600.0 * (os.cpu_count() or 1) / cpu
            found[f"{task} {name}"] = {"cpu_s": cpu, "per_hour": per_hour, "steps": steps}
    return found | {"load": round(os.getloadavg()[2], 1), "turns": turns}


def run_views(words: list[str]) -> list[dict[str, Any]]:
    """Run ``views.py``; return its figures."""
    with tempfile.TemporaryDirectory() as folder:
        figures = Path(folder) / "figures.json"
        run_timed([sys.executable, "benchmarks/views.py", *words, "--json", str(figures)], ROOT)
        return json.loads(figures.read_text())


def measure_views(baseline: Path, turns: int) -> dict[str, Any]:
    """Measure views of both checkouts in turns."""
    rows = run_views(["--checkout", str(baseline), "--checkout", str(ROOT), "--turns", str(turns)])
    names = {str(baseline): "baseline", str(ROOT): "now"}
    return {f"{row['case']} {names[row['checkout']]}": row["median_ms"] for row in rows}


def measure_growth(_: Path, turns: int) -> dict[str, Any]:
    """Measure views of this checkout for increasing numbers of objects, pixels and cameras."""
    found: dict[str, Any] = {"objects": {}, "pixels": {}, "cameras": {}}
    for count in OBJECTS:
        rows = run_views(["--objects", str(count), "--turns", str(turns), "--case", "front", "--case", "wrist"])
        found["objects"][str(count)] = {row["case"]: row["best_ms"] for row in rows}
    cases = [f"{camera},{size}" for size in SIZES for camera in ("front", "wrist")]
    words = [word for case in (*cases, "front", "both") for word in ("--case", case)]
    for row in run_views(["--rows", "16", "--turns", str(turns), *words]):
        camera, _, size = row["case"].partition(",")
        if size:
            found["pixels"].setdefault(size, {})[camera] = row["best_ms"]
        else:
            found["cameras"]["2" if camera == "both" else "1"] = row["best_ms"]
    return found


def measure_opengl(_: Path, turns: int) -> dict[str, Any]:
    """Measure views against MuJoCo's OpenGL renderer."""
    with tempfile.TemporaryDirectory() as folder:
        figures = Path(folder) / "figures.json"
        words = ["--turns", str(turns), "--json", str(figures)]
        run_timed([sys.executable, "benchmarks/rendering.py", *words], ROOT)
        found = json.loads(figures.read_text())
    if "opengl" not in found["shadows"]["both"]:
        raise Skipped("no EGL on this machine")
    return {f"both {light}": found[light]["both"] for light in ("shadows", "no_shadows")}


def measure_robosuite(_: Path, turns: int) -> dict[str, Any]:
    """Measure rgb views against robosuite's."""
    python = os.environ.get("NIMBUS_ROBOSUITE_PYTHON", "")
    if not python:
        raise Skipped("set NIMBUS_ROBOSUITE_PYTHON to a Python that has robosuite 1.5")
    script = [python, str(ROOT / "benchmarks/robosuite_view.py"), "--turns", str(turns)]
    done = subprocess.run(script, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise Skipped(f"robosuite did not render: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
    ours = run_views(["--turns", str(turns), "--case", "front,rgb", "--case", "wrist,rgb"])
    return json.loads(done.stdout.splitlines()[-1]) | {f"nimbus {row['case'][:5]}": row["best_ms"] for row in ours}


PARTS: dict[str, Callable[[Path, int], dict[str, Any]]] = {
    "views": measure_views,
    "growth": measure_growth,
    "opengl": measure_opengl,
    "robosuite": measure_robosuite,
    "episodes": measure_episodes,
}


def find_baseline() -> Path:
    """Check out and install the baseline, unless it is there.

    Raises:
        Skipped: The commit is not in this clone.
    """
    commit = (ROOT / "benchmarks/baseline").read_text().strip()
    folder = ROOT / f"build/baseline-{commit}"
    if not folder.exists():
        git = shutil.which("git") or "git"
        words = ["worktree", "add", "--detach", str(folder), commit]
        done = subprocess.run([git, *words], cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode:
            raise Skipped(f"the baseline {commit} is not in this clone: {done.stderr.strip()}")
    subprocess.run(["make", "--silent", ".venv/installed-dev"], cwd=folder, check=True)  # noqa: S607
    return folder


def describe_machine() -> str:
    """Return a description of the machine."""
    model = next((line.split(":")[1].strip() for line in _cpu_lines() if line.startswith("model name")), "CPU")
    return f"{os.cpu_count()} cores of {model}, Python {platform.python_version()}"


def _cpu_lines() -> Iterator[str]:
    info = Path("/proc/cpuinfo")
    return iter(info.read_text().splitlines() if info.is_file() else ())


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--part", action="append", choices=[*PARTS], help="part to measure; may be repeated (default: all)"
    )
    parser.add_argument("--task", action="append", choices=[*LENGTHS], help="task of the part episodes (default: both)")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--baseline", type=Path, help="installed checkout of the baseline")
    parser.add_argument(
        "--json", type=Path, default=ROOT / "build/performance.json", help="JSON file of the figures, kept between runs"
    )
    parser.add_argument("--write", action="store_true", help="write docs/performance.md")
    options = parser.parse_args()
    figures: dict[str, Any] = json.loads(options.json.read_text()) if options.json.exists() else {}
    figures["machine"], figures["date"] = describe_machine(), time.strftime("%Y-%m-%d")
    for part in options.part or PARTS:
        try:
            baseline = options.baseline.resolve() if options.baseline else find_baseline()
            if part == "episodes" and options.task:
                figures[part] = measure_episodes(baseline, options.turns, options.task)
            else:
                figures[part] = PARTS[part](baseline, options.turns)
            sys.stdout.write(f"{part}: {json.dumps(figures[part], indent=2)}\n")
        except Skipped as reason:
            figures.setdefault(part, {"skipped": str(reason)})
            sys.stdout.write(f"{part}: SKIPPED: {reason}\n")
        sys.stdout.flush()
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(figures, indent=2) + "\n")
    if options.write:
        _, title, pipelines = performance_page.PAGE.read_text().partition(performance_page.PIPELINES_TITLE)
        performance_page.PAGE.write_text(performance_page.render(figures) + title + pipelines)


if __name__ == "__main__":
    main()
