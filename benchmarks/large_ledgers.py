"""Ledgers of many episodes: CPU time and memory of the commands that read them, and of a reader of a stored manifest.

``python -m benchmarks.large_ledgers 50000 200000`` prints a row for each way of reading and each size. Rows have a
realistic size of 5 kB. There are no episode files, so ``verify`` and ``hash`` read only the ledger. Each measurement
runs in a separate process, whose peak memory is recorded.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from nimbus.datagen.datasets.training.native import StoredFrames  # noqa: E402
from nimbus.datagen.datasets.training.reader import Reader  # noqa: E402
from nimbus.datagen.store.info import INFO_NAME, info_text, read_info  # noqa: E402
from nimbus.datagen.store.ledger.ledger import Ledger  # noqa: E402
from nimbus.datagen.store.ledger.records import EpisodeState, EpisodeStatus  # noqa: E402
from nimbus.datagen.store.remote.address import parse_address  # noqa: E402
from nimbus.datagen.store.remote.cache_root import note_origin  # noqa: E402
from nimbus.datagen.store.remote.episode_manifest import write_manifest  # noqa: E402
from nimbus.datagen.store.remote.object_store import ObjectStore  # noqa: E402
from nimbus.datagen.store.remote.working_copy import spool_folder  # noqa: E402
from nimbus.datagen.store.verify import check_consistency, find_unfinished  # noqa: E402
from nimbus.runner.report import write_report  # noqa: E402
from tests.support.s3 import bucket  # noqa: E402
from tests.support.synthetic import make_rendered, write_dataset  # noqa: E402

DRAWN = {f"objects.{number}": [0.12345] * 12 for number in range(20)}
"""Drawn values of a realistic size."""


def make(folder: Path, count: int) -> None:
    """Write a ledger with ``count`` stored episodes and their states."""
    write_dataset(folder, [make_rendered(0)])
    with closing(Ledger(folder)) as ledger:
        (first,) = ledger.stored()
        for start in range(1, count, 2000):  # the first episode exists already
            with ledger.batch():
                for index in range(start, min(start + 2000, count)):
                    name = f"{first.task}-s0-{index:06d}-v0-{index:08x}"
                    path = f"episodes/{name}.hdf5"
                    row = replace(first, episode_id=name, idx=index, path=path, drawn=DRAWN, attempt=0)
                    state = EpisodeState(
                        idx=index,
                        variant=0,
                        state=EpisodeStatus.DONE,
                        episode_id=name,
                        sha256=row.sha256,
                        byte_count=row.byte_count,
                    )
                    ledger.record(row, state)
        info = replace(read_info(folder), episode_count=count, step_count=count * first.step_count)
    (folder / INFO_NAME).write_text(info_text(info))


def verify_rows(folder: Path) -> None:
    """Read the ledger as ``nimbus verify`` does."""
    with closing(Ledger(folder, read_only=True)) as ledger, ledger.snapshot():
        deque(ledger.walk_attempts(), maxlen=0)
        deque(find_unfinished(ledger.episodes(EpisodeStatus.INTENT)), maxlen=0)
        stored = ledger.walk_attempts(only_stored=True, order="place")
        assert not list(check_consistency(ledger.walk_episodes(), stored, has_tasks=ledger.has_tasks))


def hash_rows(folder: Path) -> None:
    """Read the ledger as ``nimbus hash`` does."""
    with closing(Ledger(folder, read_only=True)) as ledger, ledger.snapshot():
        deque(ledger.walk_attempts(only_stored=True, order="id"), maxlen=0)


def manifest(folder: Path) -> None:
    """Write the manifest, as each snapshot of a run into a store does."""
    write_manifest(folder / "ledger.sqlite", folder / "manifest.parquet", read_info(folder))


def open_reader(folder: Path) -> None:
    """Open the dataset in a store with its descriptions and manifest, and read the columns of its facts."""
    with _in_store(folder) as address:
        begin = time.monotonic()
        reader = Reader(address)
        seconds = time.monotonic() - begin
        assert isinstance(reader.frames, StoredFrames) and len(reader.frames.lengths) == read_info(folder).episode_count
        sys.stderr.write(f"opened in {seconds:.2f} s\n")


READINGS: dict[str, Callable[[Path], object]] = {
    "report": write_report,
    "verify, rows": verify_rows,
    "hash, rows": hash_rows,
    "manifest": manifest,
    "Reader in a store": open_reader,
}


@contextmanager
def _in_store(folder: Path) -> Iterator[str]:
    with bucket("large") as address:
        store = ObjectStore(parse_address(f"{address}/x"))
        for name in (INFO_NAME, "manifest.parquet"):
            store.create(name, folder / name)
        store.create("ledger.sqlite", b"a reader opens by the manifest")
        note_origin(spool_folder(store.address), str(store.address))
        yield f"{address}/x"


def main() -> int:
    """Print the table; with ``--measure``, print one reading as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=int, nargs="*", default=[50_000, 200_000])
    parser.add_argument("--measure", nargs=2, metavar=("NAME", "FOLDER"))
    given = parser.parse_args()
    if given.measure:
        name, folder = given.measure
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        cpu, wall = time.process_time(), time.monotonic()
        READINGS[name](Path(folder))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        figures = {"cpu": time.process_time() - cpu, "wall": time.monotonic() - wall, "mb": (peak - before) / 1024}
        sys.stdout.write(json.dumps(figures) + "\n")
        return 0
    sys.stdout.write("| reading | rows | CPU-s | ms a row | MB above the start | wall s |\n|---|---|---|---|---|---|\n")
    with tempfile.TemporaryDirectory(prefix="nimbus-ledgers-") as place:
        for count in given.rows:
            make(folder := Path(place) / f"{count}", count)
            for name in READINGS:
                words = [sys.executable, "-P", __file__, "--measure", name, str(folder)]
                environment = os.environ | {"NIMBUS_CACHE": f"{place}/cache-{count}"}
                done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True, env=environment)
                found = json.loads(done.stdout.splitlines()[-1])
                cells = (name, f"{count:,}", f"{found['cpu']:.1f}", f"{1000 * found['cpu'] / count:.3f}")
                sys.stdout.write(f"| {' | '.join(cells)} | {found['mb']:.0f} | {found['wall']:.1f} |\n")
                sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
