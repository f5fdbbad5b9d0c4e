"""Whole run of ``sort_trash`` with the renderer on the device, started by the user's command."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.gpu.result import MissingError, PartResult

NEEDED = tuple("av coacd h5py mink mujoco newton ompl pxr pyarrow pydantic ruckig toppra typer".split())
"""Packages that a run imports, and that are missing on machines with only PyTorch."""
_COMMAND = "import sys; from nimbus.runner.cli import main; sys.exit(main())"
_EPISODES = 2


def check(device: str, *, is_asked: bool = True) -> PartResult:
    """Make a few episodes and verify them.

    Args:
        device: ``cuda`` or ``cpu``.
        is_asked: True to run on a CPU, too, which the tests of runs do anyway.

    Raises:
        InputError: The device does not exist.
        MissingError: A package is not installed.
    """
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise MissingError(f"no package {', '.join(missing)}")
    from nimbus.datagen.render.stacked import find_device  # needs Warp

    find_device(device)
    if device == "cpu" and not is_asked:
        raise MissingError("the tests run it on a CPU; ask for it: benchmarks.gpu --device cpu run")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        start = time.perf_counter()
        words = ("run", "--task", "sort_trash", "--episodes", str(_EPISODES), "--device", device, "--out", str(out))
        problems = _nimbus(*words)
        seconds = time.perf_counter() - start
        problems = problems or _nimbus("verify", str(out))
        stored = len(list(out.glob("episodes/*.hdf5")))
        incidents = len(list(out.glob("incidents/*")))
        starts = _start_times(out / "status.json")
    if not problems and stored < _EPISODES:
        problems = [f"{stored} of {_EPISODES} episodes are stored"]
    row = {"device": device, "episodes": stored, "incidents": incidents, "seconds": seconds, **starts}
    return PartResult(rows=(row,), problems=tuple(problems))


def _start_times(status: Path) -> dict[str, float]:
    """Return the durations of the phases before the first episode [s], by column: loading, compiling, workers."""
    if not status.is_file():
        return {}
    phases = json.loads(status.read_text(encoding="utf-8"))["phases"]
    return {f"{name}_s": float(seconds) for name, seconds in phases.items()}


def _nimbus(*words: str) -> list[str]:
    """Return the problems of a command; none if it exits with 0.

    It has no time limit, because kernels may have to be compiled; the run itself ends workers that hang.
    """
    done = subprocess.run([sys.executable, "-P", "-c", _COMMAND, *words], capture_output=True, text=True)
    if done.returncode == 0:
        return []
    return [f"nimbus {words[0]} exits with {done.returncode}: {ascii(done.stderr[-300:])}"]
