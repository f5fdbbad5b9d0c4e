"""CPU time to upload episodes to a real S3 server, compared with the CPU time to make them.

``python -m benchmarks.upload_cost out/sort_trash`` sends the episodes of a dataset to Swift as the uploader of a run
does, three times with different names, and prints medians. CPU time is that of this process, which contains the client.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from benchmarks.swift_server import SwiftServer, install
from nimbus.datagen.store.ledger.ledger import Ledger
from nimbus.datagen.store.remote.address import parse_address
from nimbus.datagen.store.remote.object_store import ObjectStore
from nimbus.datagen.store.remote.send import send_attempt
from nimbus.datagen.store.remote.signed_store import SignedStore


def main() -> int:
    """Print a row for each kind of upload."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    with closing(Ledger(given.dataset, read_only=True)) as ledger:
        rows = ledger.stored()
    made = statistics.median(row.work_seconds for row in rows)
    size = statistics.median(row.byte_count for row in rows) / 1e6
    install()
    folder = Path(tempfile.mkdtemp(prefix="nimbus-upload-"))
    server = SwiftServer(folder / "swift")
    sys.stdout.write(f"{len(rows)} episodes of {size:.1f} MB and {made:.2f} CPU-s\n")
    sys.stdout.write("| upload | CPU-s an episode | ms a MB | of the episode's CPU |\n|---|---|---|---|\n")
    try:
        os.environ.update(server.environment | {"NIMBUS_CACHE": str(folder / "cache")})
        server.start()
        server.make_bucket("nimbus")
        for is_signed in (False, True):
            costs: list[float] = []
            for number in range(given.rounds):
                store = ObjectStore(parse_address(f"s3://nimbus/{is_signed}-{number}"))
                sign = lambda name, method, store=store: store.sign(name, method=method, seconds=60)  # noqa: E731
                target = SignedStore(store.address, sign) if is_signed else store
                for row in rows:
                    begin = time.process_time()
                    dict(send_attempt(target, given.dataset, row))
                    costs.append(time.process_time() - begin)
            cost = statistics.median(costs)
            name = "signed URLs" if is_signed else "own credentials"
            sys.stdout.write(f"| {name} | {cost:.3f} | {1000 * cost / size:.2f} | {cost / made:.2%} |\n")
    finally:
        server.kill()
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
