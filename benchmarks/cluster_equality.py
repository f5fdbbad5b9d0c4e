"""Equality of datasets made by one process, as three merged parts, and on nodes that are killed.

``python -m benchmarks.cluster_equality --episodes 120 --kills 20`` makes light episodes in one process, as three parts
that are then merged, and on 1, 2 and 4 nodes while cells, agents and heads are killed. The exit code is 1 if a hash
differs.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.cluster_chaos import Chaos
from nimbus.datagen.datasets.merge import merge_parts
from nimbus.datagen.store.verify import dataset_hashes, verify
from tests.support.cells import Run, make_spec
from tests.support.clusters import ClusterRun

PARTS = 3


def serial(folder: Path, episodes: int, *, part: tuple[int, int] = (1, 1)) -> Path:
    """Make episodes, or a part of them, in one process; return the dataset."""
    spec = make_spec(folder, episodes=episodes, part=part)
    Run(spec, serial=True).end(0, patience=3600)
    return Path(spec.folder)


def main() -> int:
    """Print a row for each way to make the dataset."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=120)
    parser.add_argument("--kills", type=int, default=20, help="number of kills in each run on nodes")
    parser.add_argument("--nodes", type=int, nargs="*", default=[1, 2, 4])
    given = parser.parse_args()
    place, hashes = Path(tempfile.mkdtemp(prefix="nimbus-equality-")), dict[str, dict[str, str]]()
    try:
        hashes["one process"] = dataset_hashes(serial(place / "alone", given.episodes))
        parts = [serial(place / f"part{n}", given.episodes, part=(n, PARTS)) for n in range(1, PARTS + 1)]
        hashes[f"{PARTS} parts"] = dataset_hashes(merge_parts(parts, place / "merged").out)
        sys.stdout.write(f"{json.dumps(hashes)}\n")
        for nodes in given.nodes:
            begin = time.monotonic()
            chaos = Chaos(nodes, given.kills, given.episodes, None, longest=12.0)
            run = ClusterRun(make_spec(place / f"nodes{nodes}", episodes=given.episodes), nodes=nodes)
            chaos.plan(run, nodes)
            end = run.run()
            assert end.state == "done" and not verify(run.folder).problems, end
            hashes[name := f"{nodes} nodes"] = dataset_hashes(run.folder)
            what = {"kills": dict(chaos.injected), "seconds": round(time.monotonic() - begin), "hash": hashes[name]}
            sys.stdout.write(f"{name}: {json.dumps(what)}\n")
            sys.stdout.flush()
    finally:
        shutil.rmtree(place, ignore_errors=True)
    is_equal = all(found == hashes["one process"] for found in hashes.values())
    sys.stdout.write(f"{'equal' if is_equal else 'DIFFERENT'}\n")
    return 0 if is_equal else 1


if __name__ == "__main__":
    sys.exit(main())
