"""Throughput of four nodes with one worker each, and of one cell with four workers, on the same cores at the same time.

``python -m benchmarks.cluster_throughput --episodes 48`` runs both at once, because other work on the machine then
slows both equally. It prints the episodes per minute of each once all workers are busy, the CPU time of each, and the
ratio that the balance predicts in simulated time from the same episodes.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from nimbus.datagen.store.ledger.ledger import Ledger
from nimbus.runner.cluster.forecast import TaskCosts, forecast_cluster

TASK = Path(__file__).parents[1] / "tests" / "support" / "tiny.yaml"
COMMAND = (sys.executable, "-P", "-c", "import sys; from nimbus.runner.cli import main; sys.exit(main())")
WARM = 8
"""Number of first episodes that are left out, because workers start one after the other."""


@dataclass(frozen=True, kw_only=True)
class MeasuredRun:
    """One of the two runs."""

    ended: tuple[float, ...]
    """Times at which the episodes were stored, in ascending order [s since 1970]."""
    seconds: tuple[float, ...]
    """CPU time of each episode [s]."""

    def rate(self, begin: float, end: float) -> float:
        """Return the episodes per minute in an interval."""
        return 60 * sum(begin < time <= end for time in self.ended) / (end - begin)


def read(folder: Path) -> MeasuredRun:
    """Read the ledger of a run."""
    with closing(Ledger(folder, read_only=True)) as ledger:
        rows = sorted(ledger.stored(), key=lambda row: row.ended)
    return MeasuredRun(ended=tuple(row.ended for row in rows), seconds=tuple(row.work_seconds for row in rows))


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
    folders = {name: place / name.replace(":", "") for name in words}
    try:
        processes: dict[str, subprocess.Popen[bytes]] = {}
        for name, flags in words.items():
            (folder := folders[name]).mkdir()
            # The cell starts earlier, and must not end first.
            count = str(given.episodes * (4 if name == "one cell" else 1))
            run = ("run", "--task", str(given.task), "--episodes", count, "--out", str(folder / "data"))
            with (folder / "log").open("wb") as log:
                processes[name] = subprocess.Popen([*COMMAND, *run, *flags], stdout=log, stderr=log)
        cell_process, nodes_process = processes.values()
        assert nodes_process.wait() == 0
        if cell_process.poll() is None:
            cell_process.send_signal(signal.SIGINT)  # it finishes its current episodes
        cell_process.wait()
        found = {name: read(folders[name] / "data") for name in processes}
    finally:
        shutil.rmtree(place, ignore_errors=True)
    begin = max(run.ended[WARM - 1] for run in found.values())
    end = min(run.ended[-1] for run in found.values())
    sys.stdout.write(f"in {end - begin:.0f} s during which both had all workers:\n")
    sys.stdout.write("| run | episodes a minute | median CPU-s an episode |\n|---|---|---|\n")
    for name, run in found.items():
        median = statistics.median(run.seconds)
        sys.stdout.write(f"| {name} | {run.rate(begin, end):.2f} | {median:.2f} |\n")
    cell, nodes = found.values()
    costs = [TaskCosts(name="t", episodes=given.episodes, seconds=cell.seconds)]
    one, several = (forecast_cluster(costs, given.nodes, node_slots=slots, startup=0.0) for slots in (given.nodes, 1))
    ratio, predicted = nodes.rate(begin, end) / cell.rate(begin, end), one.wall_seconds / several.wall_seconds
    sys.stdout.write(f"nodes to cell: {ratio:.3f}; predicted: {predicted:.3f}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
