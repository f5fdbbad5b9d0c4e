"""Roles in a run whose instances take 20 s to start: a second renderer replaces a planner while workers are killed.

Run it as ``python -m benchmarks.instance_roles [--start 20] [--episodes N]``. A stand-in replaces Isaac Sim, and the
point robot needs little CPU time, so the times are those of starts and frames. In a run of 2 planners and 1 renderer
with dynamic roles, a planner and an instance are killed; in a run with fixed roles, nothing is killed. The datasets
must be equal, and nothing may be left behind.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from nimbus.runner.cell.transport.spec import CellSpec
from tests.support.cells import Run, sound
from tests.support.isaac_installation import rtx_spec

_LOOK = 0.2
"""Interval of the status checks [s]."""
_LONGEST = 3600.0
"""[s]"""


def watch(run: Run, *, kill: bool) -> dict[str, Any]:
    """Monitor a run to its end, and kill a planner and an instance while two instances work.

    Args:
        run: The run.
        kill: False for a run without kills.
    """
    begin, seen, killed = time.monotonic(), {"planners": set[int](), "renderers": set[int]()}, list[str]()
    while run.process.poll() is None and time.monotonic() - begin < _LONGEST:
        time.sleep(_LOOK)
        status = run.status()
        if status is None:
            continue
        roles = [worker.role for worker in status.workers]
        seen["planners"].add(roles.count("planner"))
        seen["renderers"].add(roles.count("renderer"))
        instances = [pid for pid in run.processes() if "nimbus.runner.isaac.worker" in _words(pid)]
        if kill and not killed and len(instances) == 2 and status.stored > 3:
            others = [worker.pid for worker in status.workers if worker.pid not in instances]
            for name, pid in (("instance", instances[0]), *(("planner", pid) for pid in others[:1])):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    killed.append(name)
    seconds = time.monotonic() - begin
    run.end(0)
    return {
        "seconds": round(seconds, 1),
        "killed": killed,
        "faults": [fault.kind for fault in run.faults()],
        **{name: sorted(counts) for name, counts in seen.items()},
    }


def _words(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    return ""


def main() -> int:
    """Print both runs; return 1 if the contents differ, no role changed, or dynamic roles were not faster."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--start", type=float, default=20.0)
    parser.add_argument("--frame", type=float, default=0.4)
    parser.add_argument("--episodes", type=int, default=60)
    parser.add_argument("--slow-plans", action="store_true", help="let a plan take 3 s, so one planner must remain")
    args = parser.parse_args()
    found: dict[str, dict[str, Any]] = {}
    hashes: list[dict[str, str]] = []
    with tempfile.TemporaryDirectory(prefix="nimbus-roles-") as folder:
        for name, moves in (("fixed", False), ("moving", True)):
            spec: CellSpec = rtx_spec(
                Path(folder, name),
                start=args.start,
                frame=args.frame,
                workers=(2, 1),
                episodes=args.episodes,
                moves_instances=moves,
                mishaps={f"plan {index}": "sleep" for index in range(args.episodes) if args.slow_plans},
            )
            found[name] = watch(Run(spec), kill=moves)
            hashes.append(sound(spec))
            sys.stdout.write(f"{name}: {json.dumps(found[name])}\n")
            sys.stdout.flush()
    is_equal, is_shorter = hashes[0] == hashes[1], found["moving"]["seconds"] < found["fixed"]["seconds"]
    has_moved = 2 in found["moving"]["renderers"]
    share = found["moving"]["seconds"] / found["fixed"]["seconds"]
    sys.stdout.write(f"equal {is_equal}, moved {has_moved}, {share:.2f} times as long as the fixed split\n")
    return 0 if is_equal and has_moved and is_shorter and found["moving"]["killed"] else 1


if __name__ == "__main__":
    sys.exit(main())
