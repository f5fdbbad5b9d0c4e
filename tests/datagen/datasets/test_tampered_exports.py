"""Manipulated LeRobot datasets and shards: each causes one line or a finding."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nimbus.datagen.datasets.convert.convert import convert, open_set
from nimbus.datagen.datasets.export.export import export
from nimbus.datagen.datasets.quality.checks import check
from nimbus.datagen.datasets.quality.finding import Unreadable
from nimbus.datagen.datasets.quality.lerobot import open_lerobot
from nimbus.datagen.datasets.quality.tables import read_table
from nimbus.datagen.datasets.training.reader import Reader
from nimbus.datagen.datasets.training.sharded import ShardManifest, check_shards
from nimbus.datagen.errors import InputError
from tests.support.foreign import write_v21
from tests.support.synthetic import write_dataset

ROWS = "data/chunk-000/file-000.parquet"
EPISODES = "meta/episodes/chunk-000/file-000.parquet"
STATE = "observation.state"


def set_column(path: Path, name: str, values: Any) -> None:
    table = pq.ParquetFile(path).read()
    values = values(len(table)) if callable(values) else values
    pq.write_table(table.set_column(table.column_names.index(name), name, values), path)


@pytest.fixture
def v30(tmp_path: Path) -> Path:
    convert(write_v21(tmp_path / "v21", lengths=(9, 6)), tmp_path / "v30", workers=1)
    return tmp_path / "v30"


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    write_dataset(tmp_path / "data")
    export(tmp_path / "data", tmp_path / "shards", to="shards", workers=1)
    return tmp_path / "shards"


def train(folder: Path) -> None:
    with Reader(folder) as reader:
        reader.frames.facts()
        _ = reader[0], reader[len(reader) - 1]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        (STATE, lambda count: pa.array(["../stolen"] * count)),
        (STATE, lambda count: pa.nulls(count, pa.list_(pa.float32()))),
        (STATE, lambda count: pa.array([[]] * count, pa.list_(pa.float32()))),
        ("timestamp", lambda count: pa.array(["now"] * count)),
        ("timestamp", lambda count: pa.array([float("nan")] * count)),
        ("episode_index", lambda count: pa.array([-1] * count)),
        ("episode_index", lambda count: pa.array([[0]] * count)),
        ("task_index", lambda count: pa.array([1e300] * count)),
    ],
)
def test_rows_of_another_kind_are_one_line(v30: Path, name: str, values: Callable[[int], Any]) -> None:
    set_column(v30 / ROWS, name, values)
    assert any(finding.is_certain for finding in check(open_lerobot(v30)))
    if name == STATE:  # as a column of texts, it may be copied
        convert(v30, v30.with_name("out"), workers=1)
        with pytest.raises(InputError):
            train(v30)
        return
    with pytest.raises(InputError):
        convert(v30, v30.with_name("out"), workers=1)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("length", [-3, 6]),
        ("length", [2**62, 6]),
        ("episode_index", [0, 2**60]),
        ("dataset_from_index", [-(2**40), 9]),
        ("data/file_index", [None, 0]),
        ("videos/observation.images.front/from_timestamp", [float("nan"), 0.0]),
        ("videos/observation.images.front/from_timestamp", [1e300, 0.0]),
    ],
)
def test_episodes_of_another_kind_are_one_line(v30: Path, name: str, values: list[float | None]) -> None:
    set_column(v30 / EPISODES, name, pa.array(values))
    assert any(finding.is_certain for finding in check(open_lerobot(v30)))
    for read in (open_set, train):
        with pytest.raises(InputError):
            read(v30)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("chunks_size", -1),
        ("total_frames", 10**40),
        ("fps", float("nan")),
        ("features", {STATE: {"dtype": 3}}),
        ("features", {STATE: {"dtype": "float32", "shape": [-4]}}),
        ("data_path", "x" * 100_000),
    ],
)
def test_a_description_of_another_kind_is_one_line(v30: Path, name: str, value: Any) -> None:
    path = v30 / "meta/info.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {name: value}))
    for read in (open_set, open_lerobot, train):
        with pytest.raises(InputError, match="info.json: "):
            read(v30)


def test_a_table_of_repeated_values_is_not_unpacked(tmp_path: Path) -> None:
    """A table of one or two kilobytes would expand to a gigabyte of rows."""
    path = tmp_path / "rows.parquet"
    count = 20_000_000
    pq.write_table(pa.table({"index": pa.repeat(1, count)}), path)
    assert path.stat().st_size < 1 << 18
    with pytest.raises(Unreadable, match=r"declares 200000\d\d values"):
        read_table(path)


@pytest.mark.parametrize("name", ["videos", "data", "meta/episodes"])
def test_a_pipe_among_the_files_is_not_waited_for(v30: Path, name: str) -> None:
    path = next(path for path in sorted((v30 / name).rglob("*")) if path.is_file())
    path.unlink()
    os.mkfifo(path)
    assert any(finding.is_certain for finding in check(open_lerobot(v30)))
    with pytest.raises(InputError, match="not a regular file|missing"):
        open_set(v30)
    with pytest.raises(InputError, match="is not a regular file"):
        train(v30)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("shard", [-1, 0]),
        ("hdf5/offset", [-512, 512]),
        ("hdf5/bytes", [2**50, 512]),
        ("length", [-1, 1]),
        ("episode_id", [3, 4]),
        ("content_sha256", [b"a", b"b"]),
    ],
)
def test_a_manifest_of_another_kind_is_one_line(shards: Path, name: str, values: list[Any]) -> None:
    set_column(shards / "manifest.parquet", name, pa.array(values))
    with pytest.raises(InputError, match="not a manifest of shards|but the file has|the limit is"):
        list(check_shards(ShardManifest(shards)))


@pytest.mark.parametrize("note", ["{}", "[]", '{"format": "nimbus-shards-1"}', '{"format": "x", "source": 3}', "{"])
def test_a_note_of_another_kind_is_one_line(shards: Path, note: str) -> None:
    path = shards / "manifest.parquet"
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({"nimbus": note}), path)
    with pytest.raises(InputError, match="manifest.parquet: "):
        ShardManifest(shards)


def test_a_manifest_without_a_column_is_one_line(shards: Path) -> None:
    path = shards / "manifest.parquet"
    pq.write_table(pq.read_table(path).drop_columns(["success"]), path)
    with pytest.raises(InputError, match="no column success"):
        train(shards)


def test_an_extra_file_of_holes_is_not_copied(v30: Path) -> None:
    """Copying such a file once filled the disk."""
    (v30 / "notes.bin").touch()
    os.truncate(v30 / "notes.bin", 1 << 39)
    with pytest.raises(InputError, match="notes.bin: .*the file is sparse and nearly empty"):
        convert(v30, v30.with_name("out"), workers=1)
