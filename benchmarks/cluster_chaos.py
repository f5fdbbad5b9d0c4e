"""Chaos test of a cluster on this machine: processes are killed and stopped, answers are dropped, a disk is slow.

``python -m benchmarks.cluster_chaos --kills 100 --episodes 600 --real 10``: it makes light episodes on three nodes,
then real ones on two. They are written into a folder or, with ``--store``, into a Swift server, which is also killed.
Each run must end with the dataset of a single process: nothing lost, doubled, different or left over; otherwise, the
exit code is 1.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.swift_server import SwiftServer, install  # noqa: E402
from nimbus.datagen.store.ledger.attempt import Attempt  # noqa: E402
from nimbus.datagen.store.ledger.ledger import Ledger  # noqa: E402
from nimbus.datagen.store.remote.address import parse_address  # noqa: E402
from nimbus.datagen.store.remote.object_store import ObjectStore  # noqa: E402
from nimbus.datagen.store.remote.working_copy import open_dataset  # noqa: E402
from nimbus.datagen.store.verify import dataset_hashes, verify  # noqa: E402
from nimbus.runner.cell.run import run_serial  # noqa: E402
from nimbus.runner.cell.store_run import run_into_store  # noqa: E402
from nimbus.runner.cell.transport.spec import CellSpec, Resources  # noqa: E402
from nimbus.runner.cluster.job import ClusterJob, HeadEnd  # noqa: E402
from nimbus.runner.cluster.job_description import describe_task  # noqa: E402
from nimbus.runner.cluster.job_file import needs_of  # noqa: E402
from tests.support.cells import Run, make_spec  # noqa: E402
from tests.support.clusters import ClusterRun, job_of  # noqa: E402

SLOW_DISK = """
import os, time
_fsync = os.fsync
def fsync(descriptor):
    time.sleep(0.2)
    _fsync(descriptor)
os.fsync = fsync
"""
DROP_EVERY = 7
"""Every n-th answer to a node is dropped."""
_NAMES = 8
"""Largest number of names in a result."""
REAL = Path(__file__).parents[1] / "tests" / "support" / "tiny.yaml"


@dataclass(frozen=True, kw_only=True)
class ChaosResult:
    """Outcome of one run under chaos."""

    state: str
    line: str
    """Reason if the run failed."""
    asked: int
    stored: int
    injected: dict[str, int]
    lost: int
    doubled: int
    wrong: int
    strays: int
    stray_names: list[str]
    """Names of the first files and processes left over."""
    problems: int
    seconds: float

    @property
    def is_good(self) -> bool:
        """True if nothing is lost, doubled, different or left over."""
        bad = self.lost + self.doubled + self.wrong + self.strays + self.problems
        return self.state == "done" and not bad


def even_steps(kills: int, episodes: int) -> list[int]:
    """Return the numbers of stored episodes at which to kill a process, spread evenly over a run."""
    return [(number + 1) * episodes // (kills + 1) for number in range(kills)]


class Chaos:
    """Kills of random components, evenly spaced over a run's progress.

    Args:
        seed: Seed of the draws.
        kills: Number of kills.
        episodes: Number of episodes of the run.
        store: Server that is also killed; None for a run into a folder.
        longest: Longest time for which a node is disconnected [s].
    """

    def __init__(
        self, seed: int, kills: int, episodes: int, store: SwiftServer | None, *, longest: float = 35.0
    ) -> None:
        self._longest, self._restarting = longest, threading.Lock()
        self._random = random.Random(seed)
        self._due = even_steps(kills, episodes)
        self._store = store
        self.injected: Counter[str] = Counter()

    def plan(self, run: ClusterRun, nodes: int) -> None:
        """Start the faults of a run."""
        kinds = ["cell", "agent", "head", "freeze", "partition"] + (["store"] if self._store else [])
        for settled in self._due:
            kind, node = self._random.choice(kinds), f"n{self._random.randint(1, nodes)}"
            run.at(settled, lambda run, kind=kind, node=node: self._disturb(run, kind, node))

    def _disturb(self, run: ClusterRun, kind: str, node: str) -> None:
        self.injected[kind] += 1
        if kind == "cell":
            run.kill_cell(node)
        elif kind == "agent":
            run.kill(node)
        elif kind == "head":
            run.kill("head")
        elif kind == "freeze":
            run.freeze("head", self._random.uniform(0.5, 3.0))
        elif kind == "partition":
            run.freeze(node, min(self._longest, self._random.choice([2.0, 12.0, 35.0])))
        elif self._store:
            threading.Thread(target=self._restart_store, args=(self._random.uniform(0.5, 3.0),)).start()

    def _restart_store(self, seconds: float) -> None:
        """Kill the store, and start it again; restarts do not overlap."""
        assert self._store
        with self._restarting:
            self._store.kill()
            time.sleep(seconds)
            self._store.start()


def run_chaos(
    spec: CellSpec,
    alone: Path,
    chaos: Chaos,
    *,
    nodes: int,
    job: ClusterJob | None = None,
    address: str = "",
    place: Path,
) -> ChaosResult:
    """Run once; compare the result with the dataset of one process.

    Args:
        spec: The run.
        alone: Dataset of one process.
        chaos: Faults of the run.
        nodes: Number of nodes; the second drops answers, the last has a slow disk.
        job: Description of the spec; the job with light episodes by default.
        address: Address of the dataset in a store; empty for the folder of the spec.
        place: Folder for files of this run.
    """
    (place / "slow").mkdir(exist_ok=True)
    (place / "slow" / "sitecustomize.py").write_text(SLOW_DISK)
    begin, ends = time.monotonic(), list[HeadEnd]()

    def environment(number: int) -> dict[str, str]:
        if number == nodes:
            return {"PYTHONPATH": os.pathsep.join((str(place / "slow"), os.environ["PYTHONPATH"]))}
        return {"NIMBUS_DROP_ANSWERS": str(DROP_EVERY)} if number == 2 else {}

    def share(folder: Path) -> int:
        own = job or job_of(replace(spec, folder=str(folder)))
        tasks = tuple(replace(task, spec=replace(task.spec, folder=str(folder))) for task in own.tasks)
        run = ClusterRun(
            replace(spec, folder=str(folder)),
            nodes=nodes,
            environment=environment,
            job=replace(own, folder=str(folder), tasks=tasks),
        )
        chaos.plan(run, nodes)
        ends.append(run.run())  # checks that no process and no folder of a node is left
        return 0

    if address:
        run_into_store(parse_address(address), share)
    else:
        share(Path(spec.folder))
    folder = open_dataset(address) if address else Path(spec.folder)
    seconds = time.monotonic() - begin
    rows, wanted = stored_rows(folder), {row.episode_id: row.sha256 for row in stored_rows(alone)}
    found = {row.episode_id: row.sha256 for row in rows}
    names = {name for row in rows for name in row.files}
    if address:
        present = {name for name, _ in ObjectStore(parse_address(address)).names("episodes")}
    else:
        present = {f"episodes/{path.name}" for path in (folder / "episodes").iterdir()}
        present |= {f"stage/{path.name}" for path in (folder / "stage").glob("*")}
    return ChaosResult(
        state=ends[-1].state,
        line=ends[-1].line,
        asked=len(wanted),
        stored=len(found),
        injected=dict(chaos.injected),
        lost=len(wanted.keys() - found.keys()),
        doubled=len(rows) - len({(row.idx, row.variant) for row in rows}),
        wrong=sum(wanted.get(name) != value for name, value in found.items())
        + (dataset_hashes(folder) != dataset_hashes(alone)),
        strays=len(present - names),
        stray_names=sorted(present - names)[:_NAMES],
        problems=len(verify(folder).problems),
        seconds=round(seconds, 1),
    )


def stored_rows(folder: Path) -> list[Attempt]:
    """Return the rows of a dataset's episodes."""
    with closing(Ledger(folder, read_only=True)) as ledger:
        return list(ledger.walk_attempts(only_stored=True))


def light(folder: Path, given: argparse.Namespace, store: SwiftServer | None) -> ChaosResult:
    """Run light episodes."""
    alone = folder / "alone" / "data"
    Run(make_spec(alone, episodes=given.episodes), serial=True).end(0, patience=3600)
    spec = make_spec(folder / "light" / "data", episodes=given.episodes)
    chaos = Chaos(given.seed, given.kills, given.episodes, store, longest=given.longest)
    address = "s3://nimbus/light" if store else ""
    return run_chaos(spec, alone, chaos, nodes=given.nodes, address=address, place=folder)


def real(folder: Path, given: argparse.Namespace, store: SwiftServer | None) -> ChaosResult:
    """Run real episodes with physics and images; five kills."""
    spec = CellSpec(folder=str(folder / "one"), task=str(REAL), episodes=given.real)
    run_serial(spec)
    spec = replace(spec, folder=str(folder / "real"), resources=Resources(workers=(1, 1)))
    job = ClusterJob(folder=spec.folder, tasks=(describe_task("drive", spec, needs=needs_of(spec)),))
    chaos = Chaos(given.seed + 1, min(5, given.kills), given.real, store)
    address = "s3://nimbus/real" if store else ""
    return run_chaos(spec, folder / "one", chaos, nodes=2, job=job, address=address, place=folder)


def main() -> int:
    """Print a row for each run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--episodes", type=int, default=600)
    parser.add_argument("--real", type=int, default=10)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--longest", type=float, default=35.0, help="longest time for which a node is disconnected [s]")
    parser.add_argument(
        "--store", action="store_true", help="store the episodes in a Swift server, which is also killed"
    )
    given = parser.parse_args()
    folder, results = Path(tempfile.mkdtemp(prefix="nimbus-chaos-")), list[ChaosResult]()
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        store = None
        if given.store:
            install()
            store = SwiftServer(folder / "swift")
            os.environ.update(store.environment | {"NIMBUS_CACHE": str(folder / "cache")})
            stack.callback(store.kill)
            store.start()
            store.make_bucket("nimbus")
        for kind in (light, real) if given.real else (light,):
            results.append(kind(folder, given, store))
            sys.stdout.write(f"{kind.__name__}: {json.dumps(vars(results[-1]))}\n")
            sys.stdout.flush()
    return 0 if all(result.is_good for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
