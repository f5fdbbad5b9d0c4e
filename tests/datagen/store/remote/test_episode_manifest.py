"""Readers open a run's dataset in a store by its manifest, without downloading the ledger."""

from __future__ import annotations

import shutil
import tracemalloc
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from nimbus.datagen.datasets.training.native import StoredFrames
from nimbus.datagen.datasets.training.reader import Reader
from nimbus.datagen.datasets.training.stored_source import ManifestItems, column
from nimbus.datagen.errors import InputError
from nimbus.datagen.store.info import DatasetInfo, read_info
from nimbus.datagen.store.ledger.ledger import Ledger
from nimbus.datagen.store.remote import working_copy
from nimbus.datagen.store.remote.address import parse_address
from nimbus.datagen.store.remote.episode_manifest import (
    FILE_NAME,
    FORMAT,
    _schema,
    read_manifest,
    write_manifest,
)
from nimbus.datagen.store.remote.object_store import ObjectStore
from nimbus.datagen.store.remote.spool import open_spool
from nimbus.datagen.store.remote.uploader import Uploader
from nimbus.datagen.store.remote.working_copy import copy_folder, open_dataset
from nimbus.datagen.store.verify import verify
from tests.support.synthetic import failed_attempts, make_rendered, write_dataset

LEDGER = "ledger.sqlite"


@pytest.fixture
def sent(address: str, tmp_path: Path) -> tuple[str, Path]:
    """Return a dataset uploaded by a run, and the same one in a folder."""
    spool, store, lock = open_spool(parse_address(address))
    write_dataset(spool, [make_rendered(index) for index in range(3)])
    uploader = Uploader(store, spool, lock)
    assert uploader.go_on() == 0
    uploader.publish()
    uploader.close()
    write_dataset(tmp_path / "data", [make_rendered(index) for index in range(3)])
    shutil.rmtree(copy_folder(store.address), ignore_errors=True)
    return address, tmp_path / "data"


def test_reader_needs_no_ledger(sent: tuple[str, Path]):
    address, folder = sent
    copy = copy_folder(parse_address(address))
    with Reader(address) as remote, Reader(folder) as here:
        assert not (copy / LEDGER).exists() and len(remote) == len(here)
        for name, values in here.frames.facts().items():
            assert np.array_equal(remote.frames.facts()[name], values), name
        for row in (0, len(here) - 1):
            for name, value in here[row].items():
                assert np.array_equal(remote[row][name], value), name
    assert verify(open_dataset(address)).problems == () and (copy / LEDGER).exists()


def test_manifest_of_an_earlier_state_is_passed_over(sent: tuple[str, Path]):
    """This happens if an older version of Nimbus continued the run, or if the manifest is being published at this
    moment.
    """
    address, _ = sent
    store = ObjectStore(parse_address(address))
    old = store.read(FILE_NAME)
    spool, _, lock = open_spool(parse_address(address))
    write_dataset(spool, [make_rendered(3)])
    uploader = Uploader(store, spool, lock)
    uploader.go_on()
    uploader.publish()
    uploader.close()
    store.replace(FILE_NAME, old)
    frames = Reader(address).frames
    assert isinstance(frames, StoredFrames) and len(frames.lengths) == 4


def test_damaged_manifest_is_one_line(sent: tuple[str, Path]):
    copy = open_dataset(sent[0])
    (copy / FILE_NAME).write_bytes(b"PAR1 and nothing else")
    with pytest.raises(InputError, match="cannot be read"):
        read_manifest(copy / FILE_NAME, read_info(copy))


def test_no_file_of_a_store_is_endless(sent: tuple[str, Path]):
    """A manifest may declare any size, and its server may invent as many bytes."""
    address, _ = sent
    store = ObjectStore(parse_address(address))
    path = open_dataset(address) / FILE_NAME
    table = parquet.read_table(path)
    at = table.column_names.index("byte_count")
    sizes = pa.array([1 << 60] * len(table), table.schema.field(at).type)
    parquet.write_table(table.set_column(at, table.schema.field(at), sizes), path)
    store.replace(FILE_NAME, path.read_bytes())
    with Reader(address) as remote, pytest.raises(InputError, match=f"{1 << 60} bytes; the limit is {1 << 36}"):
        remote[0]


def test_ledger_is_fetched_once_it_is_asked_for(sent: tuple[str, Path], monkeypatch: pytest.MonkeyPatch):
    address, _ = sent
    names: list[str] = []
    download = ObjectStore.download
    monkeypatch.setattr(ObjectStore, "download", lambda *args, **more: names.append(args[1]) or download(*args, **more))
    working_copy.open_dataset(address, has_ledger=False)
    assert LEDGER not in names
    for _ in range(2):
        working_copy.open_dataset(address)
    assert names.count(LEDGER) == 1


def test_recoveries_follow_the_other_episodes(tmp_path: Path):
    """Recoveries follow the other episodes, as in an export."""
    info = DatasetInfo(task="t", task_hash="0", seed=0, episode_count=3, step_count=30)
    with closing(Ledger(tmp_path)) as ledger:
        for index, steps in enumerate([("pick a",), ("disturbed a",), ("pick b",)]):
            row = replace(failed_attempts(variants=1)[0], idx=index, episode_id=f"t-s0-{index:06d}-v0-00000000")
            row = replace(row, success=True, path=f"episodes/{row.episode_id}.hdf5", steps=steps, step_count=10)
            ledger.record(row)
            ledger._connection.execute(
                "INSERT OR REPLACE INTO episodes VALUES ('', ?, 0, 'DONE', '', 0, '', '', '', 0, '')", (index,)
            )
    write_manifest(tmp_path / LEDGER, tmp_path / FILE_NAME, info)
    table = read_manifest(tmp_path / FILE_NAME, info)
    assert table and table.column("index").to_pylist() == [0, 2, 1]
    assert read_manifest(tmp_path / FILE_NAME, replace(info, episode_count=4)) is None


def test_one_long_text_is_in_memory_once(tmp_path: Path):
    """One episode has a split of 50,000 letters, the other 999 do not take as much space."""
    info = DatasetInfo(task="t", task_hash="0", seed=0, episode_count=1000, step_count=1)
    rows = {"split": [50_000 * "x", *(999 * ["train"])], "videos": 1000 * [[]], "success": 1000 * [True]}
    counts = {b"nimbus.episode_count": b"1000", b"nimbus.step_count": b"1"}
    schema = _schema().with_metadata({b"nimbus.format": FORMAT.encode(), **counts})
    filler = {field.name: 1000 * (["1"] if field.type == pa.string() else [1]) for field in schema}
    parquet.write_table(pa.table(filler | rows, schema=schema), tmp_path / FILE_NAME)
    tracemalloc.start()
    table = read_manifest(tmp_path / FILE_NAME, info)
    assert table and len(column(ManifestItems(tmp_path, table), "split")) == 1000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6
