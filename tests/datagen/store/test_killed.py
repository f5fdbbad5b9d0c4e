from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nimbus.datagen.store.ledger.ledger import Ledger
from nimbus.datagen.store.verify import dataset_hashes, verify
from tests.support.synthetic import make_rendered, open_dataset, write_dataset

COUNT = 8
SCRIPT = """
import sys
from pathlib import Path
from nimbus.datagen.store.writer import Hdf5Writer
from tests.support.synthetic import make_rendered, open_dataset
with open_dataset(Path(sys.argv[1])) as dataset:
    writer = Hdf5Writer(dataset, images=sys.argv[3])
    for index in range(int(sys.argv[2])):
        if not dataset.ledger.finished(index):
            for stored in writer.process(make_rendered(index)):
                print(stored.episode_id, flush=True)
    writer.close()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("delay", "images"), [(0.012, "video"), pytest.param(0.03, "lossless", marks=pytest.mark.long)]
)
def test_a_killed_writer_loses_nothing_that_it_acknowledged_and_the_next_one_finishes(
    tmp_path: Path, delay: float, images: str
) -> None:
    folder = tmp_path / "data"
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    arguments = [sys.executable, "-c", SCRIPT, str(folder), str(COUNT), images]
    with subprocess.Popen(arguments, env=env, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        acknowledged = [process.stdout.readline().strip()]
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        acknowledged += process.stdout.read().split()
    open_dataset(folder).close()
    found = verify(folder)
    assert found.problems == () and 1 <= found.episode_count <= COUNT
    ledger = Ledger(folder, read_only=True)
    assert {attempt.episode_id for attempt in ledger.stored()} >= set(acknowledged)
    ledger.close()

    subprocess.run(arguments, env=env, check=True, capture_output=True)
    assert verify(folder).problems == () and verify(folder).episode_count == COUNT
    write_dataset(tmp_path / "clean", [make_rendered(index) for index in range(COUNT)], images=images)
    assert dataset_hashes(folder) == dataset_hashes(tmp_path / "clean")
