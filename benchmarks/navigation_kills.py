"""Navigation in three runs (a cell, one process, a cell killed and continued): lost episodes, and dataset hashes.

``python -m benchmarks.navigation_kills [--task NAME] [--episodes N] [--kills N] [--size W H]``

A killed run loses all of its processes by SIGKILL: the launcher, the supervisor and the workers, at random moments
between the start and the end. Then it is continued. Pictures may be smaller than those of the task, so that most of the
time is spent with plans, files and ledger, where a kill can do harm.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "exts/nimbus.datagen"), str(ROOT)]

from nimbus.datagen.files.scene_files import scene_file  # noqa: E402
from nimbus.datagen.store.verify import dataset_hashes, verify  # noqa: E402
from tests.support.cells import tagged, until  # noqa: E402
from tests.support.kill_checks import done_in  # noqa: E402

_PATIENCE = 3000.0
"""Time limit of waits, for busy machines [s]."""


def start(task: Path, folder: Path, episodes: int, *words: str) -> subprocess.Popen[bytes]:
    """Start or continue a run."""
    line = [sys.executable, str(ROOT / "runner/runner.py"), "run", "--task", str(task), "--episodes", str(episodes)]
    return subprocess.Popen([*line, "--out", str(folder), *words], stdout=subprocess.DEVNULL, start_new_session=True)


def processes(folder: Path) -> list[int]:
    """Return the processes of a run except the launcher."""
    return tagged(SimpleNamespace(worker_environment={"NIMBUS_CELL": os.path.realpath(folder)}))  # type: ignore[arg-type]


def kill(process: subprocess.Popen[bytes], folder: Path) -> int:
    """Kill a run as a whole; return 1 if it was still running."""
    is_running = int(process.poll() is None)
    for pid in [process.pid, *processes(folder)]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()
    until(lambda: not processes(folder), patience=_PATIENCE)
    return is_running


def killed_run(task: Path, folder: Path, episodes: int, kills: int) -> dict[str, int]:
    """Kill a run a number of times, and continue it to its end."""
    moments, known = random.Random(0), set[str]()
    found = {"kills": 0, "lost": 0}
    for number in range(kills):
        process = start(task, folder, episodes)
        # Kills are spread over the episodes: some before the first, some between two of them.
        wanted = min(episodes - 1, episodes * number // kills)
        until(
            lambda: (folder / "ledger.sqlite").exists() or process.poll() is not None,  # noqa: B023
            patience=_PATIENCE,
        )
        until(lambda: len(done_in(folder)) >= wanted or process.poll() is not None, patience=_PATIENCE)  # noqa: B023
        time.sleep(moments.uniform(0, 4.0))
        found["kills"] += kill(process, folder)
        now = done_in(folder)
        found["lost"] += len(known - now)
        known |= now
        sys.stderr.write(f"kill {number + 1}: {len(now)} episodes stored\n")
    code = start(task, folder, episodes).wait()
    found["lost"] += len(known - done_in(folder)) + (0 if code == 0 else 1)
    return found


def main() -> int:
    """Make three datasets; return 1 if an episode is lost or a hash differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", default="navigate_homes")
    parser.add_argument("--episodes", type=int, default=8)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--size", type=int, nargs=2, help="size of the pictures [px]; the task's by default")
    words = parser.parse_args()
    text = scene_file("tasks", words.task, kind="task").read_text()
    if words.size:
        text = re.sub(r"size: \[\d+, \d+\]", f"size: {words.size}", text)
    with tempfile.TemporaryDirectory(prefix="nimbus-navigation-") as name:
        scratch = Path(name)
        task = scratch / "navigation.yaml"
        task.write_text(text)
        folders = {form: scratch / form for form in ("cell", "serial", "killed")}
        assert start(task, folders["cell"], words.episodes).wait() == 0
        assert start(task, folders["serial"], words.episodes, "--serial").wait() == 0
        found: dict[str, Any] = killed_run(task, folders["killed"], words.episodes, words.kills)
        hashes = {form: dataset_hashes(folder) for form, folder in folders.items()}
        found["problems"] = sum(len(verify(folder).problems) for folder in folders.values())
    found |= {"hashes": hashes, "equal": len({json.dumps(one) for one in hashes.values()}) == 1}
    sys.stdout.write(json.dumps(found, indent=1) + "\n")
    return 0 if found["equal"] and not found["lost"] and not found["problems"] else 1


if __name__ == "__main__":
    sys.exit(main())
