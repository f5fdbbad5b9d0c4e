"""Kills and hangs of Blender's processes in a run: episodes lost, and the hash against that of an undisturbed run.

``NIMBUS_BLENDER_PYTHON=… python -m benchmarks.blender_kills [--kills 30] [--episodes 4] [--size 32 24]``

Each disturbance waits until a Blender process has used a drawn amount of CPU time: sometimes it is still starting,
sometimes it has finished some pictures. Then the process is killed (SIGKILL), or stopped (SIGSTOP) in every second
case, which the watchdog of the render stage sees as a hang. If a run ends before all disturbances, it is repeated with
another seed.
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
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "exts/nimbus.datagen"), str(ROOT)]

from nimbus.datagen.files.scene_files import scene_file  # noqa: E402
from nimbus.datagen.store.verify import dataset_hashes, verify  # noqa: E402
from tests.support.cells import parent  # noqa: E402
from tests.support.kill_checks import done_in  # noqa: E402

_PROGRAM = b"blender_program.py"
_LATEST = 5.0
"""Largest CPU time of a process that is disturbed [s]; it loads Blender and a home in the first half."""
_PATIENCE = 40.0
"""Time without a picture after which the render stage ends a process [s]; a busy machine needs some for a home."""


def write_files(folder: Path, size: tuple[int, int]) -> Path:
    """Write a task of short paths with small pictures, and its pipeline; return the task file."""
    blender = f"{{blender: {{samples: 1, stack: 2, patience: {_PATIENCE:g}, tries: 5}}}}"
    stages = {"load": "scenes", "randomize": "goals", "plan": "path", "render": blender, "store": "hdf5"}
    (folder / "blender.yaml").write_text("".join(f"{name}: {one}\n" for name, one in stages.items()))
    text = scene_file("tasks", "navigate_homes", kind="task").read_text()
    words = f"size: [{size[0]}, {size[1]}], modalities: [rgb, depth, instance, semantic]"
    text = re.sub(r"size: \[\d+, \d+\]", words, text).replace("length: [2 m, 25 m]", "length: [1 m, 4 m]")
    task = folder / "task.yaml"
    task.write_text(text + f"pipeline: {folder / 'blender.yaml'}\nrate: 4\n")
    return task


def start(task: Path, folder: Path, episodes: int, seed: int) -> subprocess.Popen[bytes]:
    """Start a run."""
    line = [sys.executable, str(ROOT / "runner/runner.py"), "run", "--task", str(task), "--episodes", str(episodes)]
    line += ["--seed", str(seed), "--out", str(folder)]
    return subprocess.Popen(line, stdout=subprocess.DEVNULL, start_new_session=True)


def blenders(run: int) -> dict[int, float]:
    """Return the CPU time of each Blender process of a run, without stopped processes [s]."""
    found = {}
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            if _PROGRAM in (entry / "cmdline").read_bytes() and _is_below(int(entry.name), run):
                words = (entry / "stat").read_text().rpartition(")")[2].split()
                if words[0] != "T":
                    found[int(entry.name)] = (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
    return found


def _is_below(pid: int, run: int) -> bool:
    while pid > 1 and pid != run:
        pid = parent(pid)
    return pid == run


def disturb(run: subprocess.Popen[bytes], kills: int, rng: random.Random) -> dict[str, int]:
    """Disturb Blender processes of a run until it ends, at most ``kills`` times; return the counts."""
    made = {"killed": 0, "stopped": 0}
    moment = rng.uniform(0.2, _LATEST)
    while run.poll() is None and sum(made.values()) < kills:
        time.sleep(0.05)
        for pid, spent in blenders(run.pid).items():
            if spent < moment or sum(made.values()) >= kills:
                continue
            is_kill = made["killed"] <= made["stopped"]
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL if is_kill else signal.SIGSTOP)
                made["killed" if is_kill else "stopped"] += 1
                sys.stderr.write(f"{'killed' if is_kill else 'stopped'} {pid} after {spent:.1f} CPU-s, {made}\n")
            moment = rng.uniform(0.2, _LATEST)
    return made


def main() -> int:
    """Disturb runs, then repeat the first without disturbance; return 1 if anything is lost or differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--episodes", type=int, default=4)
    parser.add_argument("--size", type=int, nargs=2, default=(32, 24))
    words = parser.parse_args()
    found: dict[str, Any] = {"killed": 0, "stopped": 0, "episodes": 0, "lost": 0, "problems": 0}
    with tempfile.TemporaryDirectory(prefix="nimbus-blender-") as name:
        scratch, rng, seed = Path(name), random.Random(0), 0
        task = write_files(scratch, tuple(words.size))
        while found["killed"] + found["stopped"] < words.kills:
            folder = scratch / f"disturbed {seed}"
            run = start(task, folder, words.episodes, seed)
            left = words.kills - found["killed"] - found["stopped"]
            for kind, count in disturb(run, left, rng).items():
                found[kind] += count
            code = run.wait()
            found["episodes"] += words.episodes
            found["lost"] += words.episodes - len(done_in(folder)) + (0 if code == 0 else 1)
            found["problems"] += len(verify(folder).problems)
            seed += 1
        assert start(task, scratch / "whole", words.episodes, 0).wait() == 0
        hashes = [dataset_hashes(scratch / folder) for folder in ("disturbed 0", "whole")]
    found["equal"] = hashes[0] == hashes[1]
    sys.stdout.write(json.dumps(found | {"hashes": hashes}, indent=1) + "\n")
    return 0 if found["equal"] and not found["lost"] and not found["problems"] else 1


if __name__ == "__main__":
    sys.exit(main())
