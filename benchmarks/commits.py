"""Rate and cost of commits, one by one and in groups.

``python benchmarks/commits.py [--count N] [--rate R] [--window S] [--folder DIR] [--json]`` stages N copies (240 by
default) of a file of 0.1 MB, each synced to disk as a worker does it, and commits them one by one and in groups of 4,
16 and 64:

- as fast as possible: commits per second;
- at R per second (100), with groups that close when they are full or S after their first commit (20 ms): CPU time of a
  commit, fraction of a core, and waiting time of an episode until it is stored.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "exts/nimbus.datagen"), str(ROOT)]

from nimbus.datagen.store.commit import StagedEpisode  # noqa: E402
from nimbus.datagen.store.dataset import Dataset  # noqa: E402
from tests.support.staging import staged  # noqa: E402
from tests.support.synthetic import open_dataset  # noqa: E402

GROUPS = (1, 4, 16, 64)
FILE_BYTES = 100_000


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=240)
    parser.add_argument("--rate", type=float, default=100.0)
    parser.add_argument("--window", type=float, default=0.02, help="time for which a group stays open [s]")
    parser.add_argument("--folder", type=Path, default=None, help="folder on the disk to measure")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    rows = [_measure(args, group) for group in GROUPS]
    if args.json:
        sys.stdout.write(json.dumps(rows, indent=2) + "\n")
        return
    pace = f"at {args.rate:g} a second, groups within {1e3 * args.window:g} ms"
    sys.stdout.write(f"files of {FILE_BYTES / 1e6} MB; {args.count} commits a row, {pace}\n")
    for row in rows:
        sys.stdout.write("  ".join(f"{name} {value:g}" for name, value in row.items()) + "\n")


def _measure(args: argparse.Namespace, group: int) -> dict[str, Any]:
    count = args.count
    with tempfile.TemporaryDirectory(dir=args.folder) as place, open_dataset(Path(place) / "data") as dataset:
        files = _stage(dataset, 2 * count)
        begin, cpu = time.perf_counter(), time.process_time()
        for start in range(0, count, group):
            dataset.commit(files[start : min(count, start + group)])
        fast, fast_cpu = time.perf_counter() - begin, time.process_time() - cpu
        waits, sizes, wall, paced = _pace(dataset, files[count:], group, args)
    return {
        "group": group,
        "commits/s": round(count / fast, 1),
        "CPU ms, fast": round(1e3 * fast_cpu / count, 3),
        "CPU ms, paced": round(1e3 * paced / count, 3),
        "% of a core, paced": round(100 * paced / wall, 2),
        "mean group, paced": round(float(np.mean(sizes)), 2),
        "wait ms p50": round(1e3 * float(np.median(waits)), 1),
        "wait ms p99": round(1e3 * float(np.quantile(waits, 0.99)), 1),
    }


def _pace(
    dataset: Dataset, files: list[StagedEpisode], group: int, args: argparse.Namespace
) -> tuple[list[float], list[int], float, float]:
    """Commit episodes that arrive at a steady rate; return waits, group sizes, wall and CPU seconds."""
    waits: list[float] = []
    sizes: list[int] = []
    begin, cpu = time.perf_counter(), time.process_time()
    arrivals = [begin + number / args.rate for number in range(len(files))]
    done = 0
    while done < len(files):
        opened = max(arrivals[done], time.perf_counter())
        closes = opened + (args.window if group > 1 else 0.0)
        while (now := time.perf_counter()) < closes or now < arrivals[done]:
            if done + group <= len(files) and now >= arrivals[done + group - 1]:
                break
            time.sleep(max(0.0, min(closes, arrivals[min(done + group, len(files)) - 1]) - now))
        stop = done
        while stop < len(files) and stop < done + group and arrivals[stop] <= now:
            stop += 1
        dataset.commit(files[done:stop])
        end = time.perf_counter()
        waits += [end - arrival for arrival in arrivals[done:stop]]
        sizes.append(stop - done)
        done = stop
    return waits, sizes, time.perf_counter() - begin, time.process_time() - cpu


def _stage(dataset: Dataset, count: int) -> list[StagedEpisode]:
    """Stage many files with equal content and different names."""
    (model,) = staged(dataset, 0)
    content = model.path.read_bytes().ljust(FILE_BYTES, b"\0")
    model.path.unlink()
    return [_copy(dataset, model, index, content) for index in range(count)]


def _copy(dataset: Dataset, model: StagedEpisode, index: int, content: bytes) -> StagedEpisode:
    name = f"commit-{index:06d}"
    path = dataset.stage / f"{name}.1.{os.getpid()}.tmp"
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    attempt = replace(model.attempt, episode_id=name, idx=index, path=f"episodes/{name}.hdf5", byte_count=len(content))
    lease = dataset.lease(index, owner="renderer")
    return replace(model, attempt=attempt, path=path, lease=lease, learned=model.learned if index == 0 else None)


if __name__ == "__main__":
    main()
