"""Kills of a real S3 server during an upload: no object is torn or missing, and the dataset equals a local one.

``python benchmarks/store_kills.py --kills 50 --episodes 200``
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
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.swift_server import SwiftServer, install  # noqa: E402
from nimbus.datagen.store.remote.address import parse_address  # noqa: E402
from nimbus.datagen.store.remote.spool import open_spool  # noqa: E402
from nimbus.datagen.store.remote.uploader import Uploader, spool_sizes  # noqa: E402
from nimbus.datagen.store.remote.working_copy import open_dataset  # noqa: E402
from nimbus.datagen.store.verify import dataset_hashes, verify  # noqa: E402
from tests.support.synthetic import make_rendered, write_dataset  # noqa: E402

ADDRESS = "s3://nimbus/kills"


def main() -> int:
    """Send episodes while the server is killed repeatedly; return 1 if any check fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--episodes", type=int, default=200)
    parser.add_argument("--width", type=int, default=320, help="side of the images, which make the files large [px]")
    given = parser.parse_args()
    install()
    folder = Path(tempfile.mkdtemp(prefix="nimbus-kills-"))
    server = SwiftServer(folder / "swift")
    try:
        os.environ.update(server.environment | {"NIMBUS_CACHE": str(folder / "cache")})
        server.start()
        server.make_bucket("nimbus")
        figures = _kill(server, folder, given)
    finally:
        server.kill()
        shutil.rmtree(folder, ignore_errors=True)
    sys.stdout.write(json.dumps(figures, indent=1) + "\n")
    return (
        0 if figures["problems"] == 0 and figures["equal"] and not figures["unknown"] and not figures["missing"] else 1
    )


def _kill(server: SwiftServer, folder: Path, given: argparse.Namespace) -> dict[str, object]:
    expected = _make(folder / "local", range(given.episodes), given.width)
    spool, store, _ = open_spool(parse_address(ADDRESS))
    begin, kills = time.monotonic(), 0
    sender = _start(spool)
    writer = threading.Thread(target=_write_slowly, args=(spool, given.episodes, given.width))
    writer.start()
    chance = random.Random(0)
    while kills < given.kills and (writer.is_alive() or spool_sizes(spool)):
        time.sleep(chance.uniform(0.05, 1.5))
        server.kill()
        kills += 1
        if kills % 5 == 0:  # the sender, too
            sender.kill()
            sender.wait()
            sender = _start(spool)
        time.sleep(chance.uniform(0.0, 0.5))
        server.start()
    writer.join()
    while spool_sizes(spool):
        time.sleep(0.2)
    sender.terminate()
    sender.wait()
    uploader = Uploader(store, spool, None)
    while uploader.go_on():
        time.sleep(uploader.pause)
    uploader.publish()
    shutil.rmtree(folder / "cache" / "remote" / "copies")
    copy = open_dataset(ADDRESS)
    found = verify(copy)
    # Swift's listing may lack objects after a kill until its updater has run, so names are looked up one by one.
    known = {f"episodes/{path.name}" for path in (folder / "local" / "episodes").iterdir()}
    return {
        "kills": kills,
        "kills of the sender": kills // 5,
        "episodes": found.episode_count,
        "asked": given.episodes,
        "MB": round(found.byte_count / 1e6, 1),
        "seconds": round(time.monotonic() - begin, 1),
        "problems": len(found.problems),
        "unknown": sorted({name for name, _ in store.names("episodes")} - known),
        "missing": [name for name in sorted(known) if store.stat(name) is None],
        "equal": dataset_hashes(copy) == expected,
    }


def _make(folder: Path, indices: range, width: int) -> dict[str, str]:
    write_dataset(folder, [make_rendered(index, width=width, height=width * 3 // 4) for index in indices])
    return dataset_hashes(folder)


def _write_slowly(spool: Path, episodes: int, width: int) -> None:
    """Write groups of episodes while earlier ones are sent."""
    for start in range(0, episodes, 10):
        items = [make_rendered(i, width=width, height=width * 3 // 4) for i in range(start, min(start + 10, episodes))]
        write_dataset(spool, items)


def _start(spool: Path) -> subprocess.Popen[bytes]:
    """Start a sender as in a run."""
    words = [sys.executable, "-P", "-m", "nimbus.runner.cell.store_run", str(spool), ADDRESS]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    owner = [(spool / "owner").read_text(), (spool / "epoch").read_text()]
    return subprocess.Popen([*words, *owner, str(os.getpid())], env=environment)


if __name__ == "__main__":
    sys.exit(main())
