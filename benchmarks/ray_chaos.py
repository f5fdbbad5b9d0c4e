"""Chaos test of a Ray cluster on this machine: raylets, Ray's head process, actors and cells are killed during one run.

``build/cluster-env/bin/python -m benchmarks.ray_chaos --kills 30 --episodes 400`` needs the environment that ``make
test-cluster`` installs. A killed raylet is replaced, as an autoscaler does; Ray's head process (GCS) keeps its state in
``rocksdb`` and is started again. The dataset must equal that of one process; otherwise, the exit code is 1.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from benchmarks.cluster_chaos import even_steps
from benchmarks.cluster_equality import serial
from nimbus.datagen.errors import InputError
from nimbus.datagen.store.verify import dataset_hashes, verify
from nimbus.runner.cell.transport.spec import CellSpec
from nimbus.runner.monitor.status import read_status
from tests.support.cells import make_spec, tagged
from tests.support.ray_clusters import RayNodes, actor_pids, kill_actors

RUN = """
import sys
from nimbus.runner.cell.transport.spec import CellSpec
from tests.support.ray_clusters import RayRun
print("end", RayRun(CellSpec.from_text(sys.argv[1])).run())
"""
KINDS = ("raylet", "raylet", "head actor", "relay actor", "cell", "gcs")


class RayChaos:
    """Kills that are evenly spaced over a run's progress. They run in the main thread, because Ray sets signal
    handlers.

    Args:
        nodes: The cluster.
        spec: The run.
        seed: Seed of the draws.
    """

    def __init__(self, nodes: RayNodes, spec: CellSpec, *, seed: int) -> None:
        self._nodes, self._spec = nodes, spec
        self._random = random.Random(seed)
        self.injected: Counter[str] = Counter()

    def kill(self, kinds: tuple[str, ...]) -> bool:
        """Kill one component; return False if there is no process of the drawn kind at this moment."""
        kind = self._random.choice(kinds)
        if kind == "raylet":
            self._nodes.kill_raylet()
            self._nodes.add()
        elif kind == "gcs":
            self._nodes.restart_gcs()
        elif kind == "cell":
            places = Path(os.environ["NIMBUS_SPOOL"]).glob("*/*/*/drive")
            pids = [pid for place in places for pid in tagged(CellSpec(folder=str(place)))]
            for pid in pids:
                with suppress(ProcessLookupError):  # the worker of a killed cell ends with it
                    os.kill(pid, 9)
            if not pids:
                return False
        elif actor_pids(name := {"head actor": "HeadActor", "relay actor": "RelayActor"}[kind]):
            kill_actors(name)
        else:
            return False
        self.injected[kind] += 1
        return True

    def settled(self) -> int:
        """Number of settled episodes."""
        try:
            status = read_status(Path(self._spec.folder))
        except InputError:
            return 0
        return status.settled if status else 0


def main() -> int:
    """Run once, and print the outcome."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--episodes", type=int, default=400)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--without-gcs", action="store_true", help="do not kill Ray's head process")
    given = parser.parse_args()
    folder, begin = Path(tempfile.mkdtemp(prefix="nimbus-ray-chaos-")), time.monotonic()
    alone = serial(folder / "alone", given.episodes)
    spec = make_spec(folder / "data", episodes=given.episodes)
    (folder / "cluster").mkdir()
    if not given.without_gcs:
        os.environ |= {"RAY_gcs_storage": "rocksdb", "RAY_gcs_storage_path": str(folder / "gcs")}
    nodes = RayNodes(folder / "cluster", nodes=given.nodes)
    chaos = RayChaos(nodes, spec, seed=given.seed)
    kinds = tuple(kind for kind in KINDS if kind != "gcs" or not given.without_gcs)
    try:
        run = subprocess.Popen([sys.executable, "-P", "-c", RUN, spec.to_text()])
        due = even_steps(given.kills, given.episodes)
        while run.poll() is None:
            time.sleep(0.2)
            if due and chaos.settled() >= due[0] and chaos.kill(kinds):
                due.pop(0)
        data = Path(spec.folder)
        found = {
            "code": run.returncode,
            "injected": dict(chaos.injected),
            "problems": len(verify(data).problems),
            "equal": dataset_hashes(data) == dataset_hashes(alone),
            "staged files left": len(list((data / "stage").glob("*"))),
            "actors left": len(actor_pids("RelayActor") + actor_pids("HeadActor")),
            "seconds": round(time.monotonic() - begin),
        }
    finally:
        nodes.stop()
        shutil.rmtree(folder, ignore_errors=True)
    sys.stdout.write(json.dumps(found) + "\n")
    left = found["staged files left"] or found["actors left"]
    return 0 if found["equal"] and not left and not found["problems"] and not run.returncode else 1


if __name__ == "__main__":
    sys.exit(main())
