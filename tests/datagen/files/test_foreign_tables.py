"""Foreign Parquet tables are read as Arrow reads them, but content that is a million times larger than the file is
refused."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nimbus.datagen.files import foreign_tables
from nimbus.datagen.files.foreign_tables import read_parquet

PICTURES = [{"bytes": b"a" * 9, "path": "a.png"}, {"bytes": b"b", "path": None}, None]
COLUMNS = {
    "texts": pa.array(["a", "b", None, "a"]),
    "bytes": pa.array([b"a", None, b""]),
    "lists": pa.array([["a", "b"], [], None]),
    "nested": pa.array([[["a"]], []]),
    "pictures": pa.array(PICTURES),
    "map": pa.array([[("k", "v")]], pa.map_(pa.string(), pa.string())),
    "fixed": pa.array([b"abcd"], pa.binary(4)),
    "numbers": pa.array([[1.0, 2.0]], pa.list_(pa.float32(), 2)),
    "empty": pa.array([], pa.string()),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_table_is_read_as_arrow_reads_it(name: str, tmp_path: Path):
    pq.write_table(pa.table({name: COLUMNS[name], "n": range(len(COLUMNS[name]))}), path := tmp_path / "a.parquet")
    assert read_parquet(path).equals(pq.read_table(path), check_metadata=True)
    assert read_parquet(path, columns=["n"]).column_names == ["n"]


@pytest.mark.parametrize("kind", ["texts", "lists", "pictures", "map"])
def test_repeated_text_is_refused(kind: str, tmp_path: Path):
    """A file of some kB contains a text of 1 MiB once, and two thousand rows that refer to it."""
    count, once = 2000, pa.array(["x" * 2**20])
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int32()), once)
    keys = pa.array(["k"] * count)
    offsets = pa.array(range(count + 1), pa.int32())
    column = {
        "texts": lambda: texts,
        "lists": lambda: pa.ListArray.from_arrays(offsets, texts),
        "pictures": lambda: pa.StructArray.from_arrays([texts], ["path"]),
        "map": lambda: pa.MapArray.from_arrays(offsets, keys, texts),
    }[kind]()
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": column}), path, compression="zstd", store_schema=False)
    assert path.stat().st_size < 100_000
    with pytest.raises(pa.ArrowInvalid, match="texts of 20971"):
        read_parquet(path)


@pytest.mark.parametrize("kind", [pa.int64(), pa.float32(), pa.bool_()])
def test_repeated_numbers_are_refused(kind: pa.DataType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Run-length encoded numbers take nothing in the file."""
    monkeypatch.setattr(foreign_tables, "_UNPACKED", 1 << 16)
    column = pa.array([0] * 200_000, pa.int64()).cast(kind)
    pq.write_table(pa.table({"a": column}), path := tmp_path / "a.parquet", compression="zstd")
    assert path.stat().st_size < 2000
    with pytest.raises(pa.ArrowInvalid, match="declares 200000 values of"):
        read_parquet(path)
