"""Kills of an evaluation, its workers and the server of its policy: ``evaluation.json`` must not change by a byte.

    python benchmarks/evaluation_kills.py POLICY [--task TASK] [--layouts 20] [--kills 20] [--pause S] --out DIR

POLICY is a trained folder. The evaluation runs in one process, then with one planner, then with two planners, and then
with ``nimbus serve-policy`` while processes are killed in turn: the whole evaluation, one of its workers, the server.
The same command continues after each kill. The time between kills is about ``--pause``. By default, it is the time in
which an undisturbed evaluation starts and stores four layouts, so some progress is made between two kills. The exit
code is 1 if a file differs."""  # noqa: D208

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
sys.path[:0] = [str(ROOT), str(ROOT / "exts/nimbus.datagen")]

from nimbus.datagen.store.ledger.ledger import Ledger  # noqa: E402
from nimbus.runner.evaluation.results import NAME  # noqa: E402
from tests.support.policy_servers import free_port  # noqa: E402

RUNNER = [sys.executable, str(ROOT / "runner" / "runner.py")]
_SPREAD = (0.5, 1.5)
"""Range of the time between two kills, as a fraction of the pause."""
_LAYOUTS_BETWEEN = 4
"""Number of layouts that an undisturbed evaluation stores between two kills, if no pause is given."""


class Victim:
    """An evaluation with a policy server; both are restarted when they have ended.

    Args:
        words: Command line of the evaluation, without its policy.
        policy: Folder of the policy.
        out: Folder of the evaluation.
    """

    def __init__(self, words: list[str], policy: str, out: Path) -> None:
        self.out, port = out, free_port()
        self._lines = {
            "server": [*RUNNER, "serve-policy", policy, "--port", str(port)],
            "evaluation": [*RUNNER, *words, "--policy", f"ws://127.0.0.1:{port}", "--out", str(out)],
        }
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def revive(self) -> bool:
        """Restart ended processes; return False when the evaluation has succeeded."""
        for name, line in self._lines.items():
            process = self._processes.get(name)
            if name == "evaluation" and process is not None and process.poll() == 0:
                return False
            if process is None or process.poll() is not None:
                where = subprocess.PIPE if name == "server" else subprocess.DEVNULL
                self._processes[name] = process = subprocess.Popen(line, stdout=where, start_new_session=True)
                if process.stdout:
                    process.stdout.readline()  # the server prints its address when it answers
        return True

    def strike(self, kind: str, rng: random.Random) -> None:
        """Kill the server, the evaluation with all of its processes, or one of those processes."""
        processes = self._tagged()
        if kind == "worker" and processes:
            processes = [rng.choice(processes)]
        elif kind != "evaluation":
            processes = [self._processes["server"].pid]
        for pid in (*processes, *([self._processes["evaluation"].pid] if kind == "evaluation" else [])):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def close(self) -> None:
        """Stop the server."""
        self._processes["server"].kill()
        self._processes["server"].wait()

    def _tagged(self) -> list[int]:
        wanted, found = os.fsencode(f"NIMBUS_CELL={os.path.realpath(self.out)}"), []
        for entry in Path("/proc").iterdir():
            with suppress(OSError):
                if entry.name.isdigit() and wanted in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
        return sorted(found)


def _measured_pause(folder: Path, *, begin: float) -> float:
    """Return the wall time in which an evaluation started and stored some layouts [s]."""
    with closing(Ledger(folder, read_only=True)) as ledger:
        ended = sorted(attempt.ended for attempt in ledger.attempts())
    return ended[min(_LAYOUTS_BETWEEN, len(ended)) - 1] - begin


def main() -> int:
    """Evaluate in five ways and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("policy")
    parser.add_argument("--task", default=str(ROOT / "docs/examples/cube_to_goal.yaml"))
    parser.add_argument("--layouts", type=int, default=20)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--pause", type=float, metavar="S", help="mean time between kills [s]")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    words, rng = ["evaluate", args.task, "--layouts", str(args.layouts)], random.Random(0)
    for name, more in (("serial", ["--serial"]), ("one", ["--workers", "1x1"]), ("two", ["--workers", "2x1"])):
        line = [*RUNNER, *words, "--policy", args.policy, "--out", str(args.out / name), *more]
        subprocess.run(line, check=True, stdout=subprocess.DEVNULL)
    begin, served = time.time(), Victim(words, args.policy, args.out / "served")
    while served.revive():
        time.sleep(0.5)
    served.close()
    pause = args.pause or _measured_pause(args.out / "served", begin=begin)
    sys.stdout.write(f"{pause:.1f} s between kills, on average\n")
    kills, number, folders = 0, 0, []
    while kills < args.kills:
        folders.append(args.out / f"killed{number}")
        victim, number = Victim(words, args.policy, folders[-1]), number + 1
        while victim.revive():
            time.sleep(pause * rng.uniform(*_SPREAD) if kills < args.kills else 0.5)
            if kills < args.kills:
                victim.strike(("worker", "server", "evaluation")[kills % 3], rng)
                kills += 1
        victim.close()
    pairs = [("serial", "one"), ("serial", "two"), *(("served", folder.name) for folder in folders)]
    same = {
        pair: (args.out / pair[0] / NAME).read_bytes() == (args.out / pair[1] / NAME).read_bytes() for pair in pairs
    }
    for (one, other), is_same in same.items():
        sys.stdout.write(f"{one} and {other}: {'equal' if is_same else 'DIFFERENT'}\n")
    sys.stdout.write(f"{kills} kills\n")
    return 0 if all(same.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
