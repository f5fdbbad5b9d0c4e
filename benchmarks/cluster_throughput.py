"""Throughput of four nodes of one worker beside one cell of four workers, on the same cores at the same time.

``python -m benchmarks.cluster_throughput --episodes 48`` runs both at once, so that other work on the machine slows
both alike, and prints what each stored per minute once all workers are busy, the CPU of each, and the ratio that the
balance predicts in simulated time from the same episodes.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from nimbus.datagen.store.ledger.ledger import Ledger
from nimbus.runner.cluster.forecast import TaskCosts, forecast_cluster

TASK = Path(__file__).parents[1] / "tests" / "support" / "tiny.yaml"
COMMAND = (sys.executable, "-c", "import sys; from nimbus.runner.cli import main; sys.exit(main())")
WARM = 8
"""First episodes, which are left out: workers begin one after the other."""


@dataclass(frozen=True, kw_only=True)
class MeasuredRun:
    """One of the two runs."""

    per_minute: float
    """Episodes stored per minute, without the first ones."""
    cpu: float
    """All processes [CPU-s]."""
    seconds: tuple[float, ...]
    """CPU of each episode [CPU-s]."""


def measure(folder: Path, process: subprocess.Popen[bytes]) -> MeasuredRun:
    """Wait for a run, and read its ledger."""
    _, code, used = os.wait4(process.pid, 0)
    process.returncode = code
    assert not code, (folder / "log").read_text()
    with closing(Ledger(folder / "data", read_only=True)) as ledger:
        rows = sorted(ledger.stored(), key=lambda row: row.ended)
    rate = (len(rows) - WARM) / (rows[-1].ended - rows[WARM - 1].ended)
    seconds = tuple(row.work_seconds for row in rows)
    return MeasuredRun(per_minute=60 * rate, cpu=used.ru_utime + used.ru_stime, seconds=seconds)


def main() -> int:
    """Print a row for each run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=48)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--task", type=Path, default=TASK)
    given = parser.parse_args()
    place, words = Path(tempfile.mkdtemp(prefix="nimbus-throughput-")), {}
    words["one cell"] = ("--workers", f"1x{given.nodes - 1}", "--roles", "dynamic")
    words[f"local:{given.nodes}"] = ("--cluster", f"local:{given.nodes}")
    try:
        processes: dict[str, subprocess.Popen[bytes]] = {}
        for name, flags in words.items():
            (folder := place / name.replace(":", "")).mkdir()
            run = ("run", "--task", str(given.task), "--episodes", str(given.episodes), "--out", str(folder / "data"))
            with (folder / "log").open("wb") as log:
                processes[name] = subprocess.Popen([*COMMAND, *run, *flags], stdout=log, stderr=log)
        found = {name: measure(place / name.replace(":", ""), process) for name, process in processes.items()}
    finally:
        shutil.rmtree(place, ignore_errors=True)
    sys.stdout.write("| run | episodes a minute | CPU-s in all | median CPU-s an episode |\n|---|---|---|---|\n")
    for name, run in found.items():
        median = sorted(run.seconds)[len(run.seconds) // 2]
        sys.stdout.write(f"| {name} | {run.per_minute:.2f} | {run.cpu:.0f} | {median:.2f} |\n")
    cell, nodes = found.values()
    costs = [TaskCosts(name="t", episodes=given.episodes, seconds=cell.seconds)]
    one, several = (forecast_cluster(costs, given.nodes, node_slots=slots, startup=0.0) for slots in (given.nodes, 1))
    ratio, predicted = nodes.per_minute / cell.per_minute, one.wall_seconds / several.wall_seconds
    sys.stdout.write(f"nodes to cell: {ratio:.3f}; predicted: {predicted:.3f}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
