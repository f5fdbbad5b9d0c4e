from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from nimbus.datagen.errors import StorageError
from nimbus.datagen.store.remote.uploads import Uploads


def test_threads_note_what_they_sent(tmp_path: Path):
    uploads = Uploads(tmp_path)
    gate = threading.Barrier(4)

    def add(thread: int) -> None:
        gate.wait()
        for number in range(50):
            uploads.add([(f"episodes/{thread}-{number}.hdf5", number)])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, range(4)))
    assert all(uploads.has(f"episodes/{thread}-49.hdf5") for thread in range(4))


def test_failed_write_leaves_the_next_one_possible(tmp_path: Path):
    """After the disk was full, the transaction once stayed open, and every later transaction failed."""
    uploads = Uploads(tmp_path)
    with pytest.raises(StorageError):
        uploads.add([("episodes/a.hdf5", 1), ("episodes/b.hdf5", None)])  # type: ignore[list-item]
    uploads.add([("episodes/b.hdf5", 1)])
    assert uploads.has("episodes/b.hdf5") and not uploads.has("episodes/a.hdf5")
