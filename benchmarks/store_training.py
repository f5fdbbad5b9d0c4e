"""Training from a bucket: waiting times with a cold cache, with a warm cache, and on four nodes with a shared cache.

``python -m benchmarks.swift_server install``, then ``python -m benchmarks.store_training``, which prints one JSON
object. The dataset is synthetic: lossless images of two cameras. A step has eight samples and takes 40 ms.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.swift_server import SwiftServer  # noqa: E402
from nimbus.datagen.datasets.training.reader import Reader  # noqa: E402
from nimbus.datagen.datasets.training.samples import Samples  # noqa: E402
from nimbus.datagen.store.remote.block_memory import MEMORY  # noqa: E402
from nimbus.datagen.store.remote.traffic import read_traffic  # noqa: E402
from nimbus.datagen.store.remote.working_copy import TRAFFIC, open_dataset  # noqa: E402
from tests.support.s3 import upload  # noqa: E402
from tests.support.synthetic import make_rendered, write_dataset  # noqa: E402

STEP = 0.04
"""Duration of a step, as on a GPU [s]."""
BATCH = 8
TOKEN = secrets.token_urlsafe(24)


def epoch(data: str, *, seed: int = 0) -> dict[str, float]:
    """Read one epoch in steps, and measure the waiting time."""
    MEMORY.clear()
    begin, cpu = time.perf_counter(), time.process_time()
    samples = Samples(Reader(data), seed=seed)
    count = 0
    for _ in samples:
        count += 1
        if count % BATCH == 0:
            time.sleep(STEP)
    wall = time.perf_counter() - begin
    return {
        "samples": count,
        "wall": round(wall, 2),
        "wait": round(samples.wait_seconds, 2),
        "wait_share": round(samples.wait_seconds / wall, 3),
        "cpu": round(time.process_time() - cpu, 2),
    }


def one_node(folder: Path, address: str) -> dict[str, Any]:
    """Measure a folder, then the store cold and warm, in one process."""
    found: dict[str, Any] = {"folder": epoch(str(folder)), "cold": epoch(address), "warm": epoch(address, seed=1)}
    TRAFFIC.flush()
    traffic = read_traffic(open_dataset(address))
    return found | {"bytes_fetched": traffic.bytes_fetched, "hit_rate": round(traffic.hit_rate, 3)}


def pool(root: Path, address: str, *, nodes: int = 4, kill: bool = False) -> dict[str, Any]:
    """Let nodes train at the same time, each with its own cache; meanwhile, kill the server of one of them."""
    caches = [root / f"{'kill' if kill else 'pool'}{number}" for number in range(nodes)]
    servers: list[subprocess.Popen[str]] = []
    urls: list[str] = []
    for cache in caches:
        env = os.environ | {"NIMBUS_CACHE": str(cache), "NIMBUS_CACHE_TOKEN": TOKEN}
        words = [sys.executable, "-P", "-c", "import sys; from nimbus.runner.cli import main; sys.exit(main())"]
        server = subprocess.Popen([*words, "warm", address, "--serve", "0"], env=env, stderr=subprocess.PIPE, text=True)
        assert server.stderr
        urls.append(server.stderr.readline().split(" at ")[1].split(";")[0])
        servers.append(server)
    env = os.environ | {"NIMBUS_CACHE_TOKEN": TOKEN, "NIMBUS_CACHE_PEERS": ",".join(urls)}
    words = [sys.executable, "-P", __file__, "--epoch", address]
    readers = [
        subprocess.Popen(
            [*words, str(number)], env=env | {"NIMBUS_CACHE": str(cache)}, stdout=subprocess.PIPE, text=True
        )
        for number, cache in enumerate(caches)
    ]
    if kill:
        while len(_blocks(caches)) < 6 and any(reader.poll() is None for reader in readers):
            time.sleep(0.02)  # only a quarter of the blocks, because readers start late on a busy machine
        servers[0].kill()
    ends = [json.loads(reader.communicate()[0].splitlines()[-1]) for reader in readers]
    for server in servers:
        server.kill()
        server.wait()
    blocks = _blocks(caches)
    names = [str(path).split("/blocks/")[1] for path in blocks]
    return {
        "reader_errors": sum(reader.returncode != 0 for reader in readers),
        "blocks_on_disks": len(names),
        "blocks_on_two_disks": len(names) - len(set(names)),
        "bytes_on_disks": sum(path.stat().st_size - 4 for path in blocks),
        "wait_share": [end["wait_share"] for end in ends],
    }


def _blocks(caches: list[Path]) -> list[Path]:
    """List the blocks that nodes keep on their disks."""
    return [path for cache in caches for path in cache.glob("remote/copies/*/blocks/**/*") if path.is_file()]


def main() -> int:
    """Run all measurements, or read one epoch as a node of the pool."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=24)
    parser.add_argument("--epoch", nargs=2, metavar=("ADDRESS", "SEED"))
    given = parser.parse_args()
    if given.epoch:
        print(json.dumps(epoch(given.epoch[0], seed=int(given.epoch[1]))))  # noqa: T201
        return 0
    root = Path(tempfile.mkdtemp(prefix="nimbus-training-"))
    server = SwiftServer(root / "swift")
    try:
        server.start()
        os.environ.update(server.environment | {"NIMBUS_CACHE": str(root / "cache")})
        server.make_bucket("nimbus")
        folder, address = root / "data", "s3://nimbus/data"
        write_dataset(folder, [make_rendered(index, steps=64) for index in range(given.episodes)])
        upload(folder, address)
        size = sum(path.stat().st_size for path in folder.glob("episodes/*.hdf5"))
        found = {"episode_bytes": size, "one_node": one_node(folder, address), "pool": pool(root, address)}
        found["pool_with_a_death"] = pool(root, address, kill=True)
        print(json.dumps(found, indent=1))  # noqa: T201
    finally:
        server.kill()
        shutil.rmtree(root, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
