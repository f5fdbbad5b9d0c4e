"""Faults of Isaac Sim instances in both roles: number of lost, doubled and wrong episodes, and leftovers.

Run it as ``python -m benchmarks.instance_chaos [--runs N] [--seed S] [--episodes N]``. Instances of the stand-in plan
and render, as with ``--physics isaacsim``. In each run, some instances have faults. At the start they exit, hang or
prompt for their license; in a frame they crash, hang, spin or run out of GPU memory; while planning they crash, hang or
fail; or they are killed from outside. A run that ends early is continued until it is complete, and compared with a run
without faults.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from nimbus.datagen.store.ledger.records import Fault
from nimbus.datagen.store.verify import dataset_hashes, verify
from nimbus.runner.cell.transport.spec import CellSpec
from tests.support.cells import Run, tagged, until
from tests.support.isaac_installation import rtx_spec
from tests.support.kill_checks import done_in

_AT_START = ("exit at start", "hang at start", "licence prompt")
_IN_A_FRAME = ("die in a frame", "hang in a frame", "spin in a frame", "out of memory in a frame")
_IN_A_PLAN = ("kill", "segv", "exit", "lock", "stop", "raise")
"""Faults of the point robot's planner; see ``tests/support/cell_pipelines/driving.py``."""
_DEADLINES = {"start": (40.0, 40.0), "render": (5.0, 10.0), "plan": (5.0, 10.0)}
"""Limits of an instance [s]: generous for the stand-in's start on a busy machine."""
_MOST_CONTINUATIONS = 8
_PATIENCE = 1200.0


def make_spec(
    folder: Path, draw: random.Random | None, *, episodes: int, number: int = 0
) -> tuple[CellSpec, dict[str, Any]]:
    """Make the spec of a run, and draw its faults; none without a generator."""
    wrong: list[str] = []
    mishaps: dict[str, str] = {}
    if draw is not None:
        wrong = [f"{_AT_START[number % len(_AT_START)]} x1", *(f"{mode} x1" for mode in draw.sample(_IN_A_FRAME, 2))]
        mishaps = {f"plan {index}": f"{draw.choice(_IN_A_PLAN)} x1" for index in draw.sample(range(episodes), 2)}
    spec = rtx_spec(
        folder,
        wrong="; ".join(wrong),
        frame=0.02,
        workers=(1, 2),
        episodes=episodes,
        physics="isaacsim",
        deadlines=_DEADLINES,
        mishaps=mishaps,
    )
    return spec, {"troubles": wrong, "mishaps": mishaps}


def endure(spec: CellSpec, draw: random.Random) -> dict[str, Any]:
    """Run a spec to its end, with a kill from outside; continue it if it ends early."""
    tally: Counter[str] = Counter()
    folder, known, kinds, lines = Path(spec.folder), set[str](), Counter[str](), list[str]()
    code = -1
    reported: list[Fault] = []
    for _ in range(_MOST_CONTINUATIONS):
        run = Run(spec)
        wanted = len(known) + draw.randint(1, 3)
        until(lambda: len(done_in(folder)) >= wanted or run.process.poll() is not None, patience=_PATIENCE)  # noqa: B023
        if instances := [pid for pid in run.processes() if _is_instance(pid)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(draw.choice(instances), signal.SIGKILL)
                tally["killed"] += 1
        done = run.end(patience=_PATIENCE)
        code = done.code
        reported = run.faults()
        tally["orphans"] += len(tagged(spec))
        tally["runs"] += 1
        now = done_in(folder)
        tally["lost"] += len(known - now)
        known |= now
        if done.code == 0:
            break
        lines += done.err.strip().splitlines()[-1:]
    kinds.update(fault.kind for fault in reported)
    files = list((folder / "episodes").glob("*.hdf5"))
    tally["lost"] += spec.episodes - len(known)
    tally["doubled"] += max(0, len(files) - len(known))
    tally["wrong"] += len(verify(folder).problems) + (code != 0)
    return {**tally, "faults": dict(kinds), "lines": lines}


def _is_instance(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return "nimbus.runner.isaac.worker" in Path(f"/proc/{pid}/cmdline").read_text()
    return False


def main() -> int:
    """Print each run and the sum; return 1 if anything was lost, doubled, wrong or left behind."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--episodes", type=int, default=8)
    args = parser.parse_args()
    total: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="nimbus-chaos-") as folder:
        clean, _ = make_spec(Path(folder, "clean"), None, episodes=args.episodes)
        Run(clean).end(0, patience=_PATIENCE)
        whole = dataset_hashes(Path(clean.folder))
        for number in range(args.runs):
            draw, place = random.Random(args.seed + number), Path(folder, str(number))
            spec, drawn = make_spec(place, draw, episodes=args.episodes, number=number)
            begin = time.monotonic()
            found = endure(spec, draw)
            found["wrong"] += dataset_hashes(Path(spec.folder)) != whole
            total.update({name: found.get(name, 0) for name in ("lost", "doubled", "wrong", "orphans", "killed")})
            total.update(found["faults"])
            row = {"run": number, **drawn, **found, "seconds": round(time.monotonic() - begin)}
            sys.stdout.write(json.dumps(row) + "\n")
            sys.stdout.flush()
            shutil.rmtree(place)
    sys.stdout.write(f"{args.runs} runs: {json.dumps(dict(total))}\n")
    return int(any(total[name] for name in ("lost", "doubled", "wrong", "orphans")))


if __name__ == "__main__":
    sys.exit(main())
