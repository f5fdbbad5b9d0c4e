"""Foreign Parquet tables are read as Arrow reads them, but content that is a million times larger than the file is
refused."""

from __future__ import annotations

import ast
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nimbus.datagen.files import foreign_tables, parquet_pages
from nimbus.datagen.files.foreign_tables import read_parquet
from tools.sources import modules, parse

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
    with pytest.raises(pa.ArrowInvalid, match="declares 20000. values of"):
        read_parquet(path)


def declare_one_value(path: Path, count: int) -> None:
    """Replace a number of values in the footer by 1; the pages keep theirs."""
    zigzag, number = 2 * count, bytearray()
    while zigzag > 127:
        number.append(zigzag & 127 | 128)
        zigzag >>= 7
    number.append(zigzag)
    content = bytearray(path.read_bytes())
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    one = bytes([0x82, *[0x80] * (len(number) - 2), 0])  # in as many bytes
    content[footer:] = content[footer:].replace(bytes(number), one)
    path.write_bytes(content)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_pages_of_more_values_than_declared_are_refused(version: str, tmp_path: Path):
    """Arrow unpacks whole pages, so a table of 10 kB could take any amount of memory."""
    count = 500_000
    lists = pa.ListArray.from_arrays(pa.array([0, count], pa.int32()), pa.array([0] * count, pa.int64()))
    path, table = tmp_path / "a.parquet", pa.table({"a": lists})
    options = {"write_statistics": False, "store_schema": False, "data_page_version": version}
    with pq.ParquetWriter(path, table.schema, **options) as writer:  # pyright: ignore[reportArgumentType]
        for _ in range(80):
            writer.write_table(table)
    declare_one_value(path, count)
    assert pq.ParquetFile(path).metadata.row_group(0).column(0).num_values == 1
    with pytest.raises(pa.ArrowInvalid, match="declares 40000080 values"):
        read_parquet(path)


@pytest.mark.parametrize("place", [4, 5, 8])
def test_damaged_page_header_is_refused(place: int, tmp_path: Path):
    pq.write_table(pa.table({"a": [1.0, 2.0]}), path := tmp_path / "a.parquet")
    content = bytearray(path.read_bytes())
    content[place : place + 12] = b"\xff" * 12
    path.write_bytes(content)
    with pytest.raises(pa.ArrowInvalid, match="header of a page|structures are damaged"):
        read_parquet(path)


def test_nested_page_header_is_refused(tmp_path: Path):
    """The reader of headers would descend once for each byte."""
    pq.write_table(pa.table({"a": ["text" * 5_000]}), path := tmp_path / "a.parquet", compression="none")
    content = bytearray(path.read_bytes())
    content[4:10_000] = b"\x1c" * (10_000 - 4)
    path.write_bytes(content)
    with pytest.raises(pa.ArrowInvalid, match="nested too deeply"):
        read_parquet(path)


def test_every_page_is_counted(tmp_path: Path):
    column = pa.array([str(number % 700) for number in range(9_000)])
    table = pa.table({"a": column, "b": [[1.0], None, []] * 3_000, "c": range(9_000)})
    options = {"data_page_size": 64, "write_batch_size": 50, "row_group_size": 4_000, "column_encoding": None}
    pq.write_table(table, path := tmp_path / "a.parquet", **options)  # pyright: ignore[reportArgumentType]
    found = [*foreign_tables._pages(pq.ParquetFile(path).metadata, path)]
    assert sum(chunk.value_count for chunk in found) == 3 * 9_000 + 700 * 3 + 1 * 3 + 9_000
    assert read_parquet(path).equals(pq.read_table(path))


def test_too_many_columns_are_refused(tmp_path: Path):
    """A column without rows takes 23 bytes."""
    schema = pa.schema([(f"c{number}", pa.int8()) for number in range(10_001)])
    pq.write_table(schema.empty_table(), path := tmp_path / "a.parquet")
    with pytest.raises(pa.ArrowInvalid, match="has 10001 columns; the limit is 10000"):
        read_parquet(path)


@pytest.mark.parametrize(("levels", "is_read"), [(32, True), (33, False)])
def test_deep_schema_is_refused(levels: int, is_read: bool, tmp_path: Path):
    """Arrow follows the levels of a schema by recursion, and a level takes some bytes."""
    column = pa.array([1])
    for _ in range(levels - 1):
        column = pa.StructArray.from_arrays([column], ["a"])
    pq.write_table(pa.table({"a": column}), path := tmp_path / "a.parquet")
    if is_read:
        assert read_parquet(path).equals(pq.read_table(path))
        return
    with pytest.raises(pa.ArrowInvalid, match="schema of more than 32 levels"):
        read_parquet(path)


@pytest.mark.parametrize(
    ("limit", "text"),
    [
        ("_MOST_GROUPS", "declares 11 row groups; the limit is 10"),
        ("_FREE_CHUNKS", "declares 11 column chunks; the limit is 10"),
        ("_MOST_ELEMENTS", "declares 12 elements of its schema; the limit is 10"),
    ],
)
def test_footer_of_many_structures_is_refused(limit: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A column of a row group takes some bytes in a footer, and 1 kB in memory."""
    table = pa.table({f"c{number}": range(11) for number in range(11)})
    pq.write_table(table, path := tmp_path / "a.parquet", row_group_size=1)
    assert read_parquet(path).equals(table)
    monkeypatch.setattr(parquet_pages, "_LEAST_CHUNK", 1_000_000)
    monkeypatch.setattr(parquet_pages, limit, 10)
    with pytest.raises(pa.ArrowInvalid, match=text):
        read_parquet(path)


@pytest.mark.parametrize(
    ("start", "text"),
    [
        (b"\x19" * 5_000, "nested too deeply"),
        (b"\x15\x04\x19\x25", "structures are damaged"),
        (b"\x15\x04\x05\x02\x04", "structures are damaged"),
        (b"\x15\x04\x18\xff\xff\x03", "ends early"),
    ],
    ids=["nested", "other items", "twice", "short"],
)
def test_damaged_footer_is_refused(start: bytes, text: str, tmp_path: Path):
    """Items of another type would be read as structures by Arrow, but not by the check."""
    pq.write_table(pa.table({"a": [1]}), path := tmp_path / "a.parquet")
    content = path.read_bytes()
    footer = start + content[-200:-8]
    path.write_bytes(content[:4] + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    with pytest.raises(pa.ArrowInvalid, match=text):
        read_parquet(path)


@pytest.mark.parametrize("is_flat", [True, False])
def test_two_columns_with_one_path_are_refused(tmp_path: Path, is_flat: bool):
    """Only one of them would be read as a dictionary, and the text of the other would be repeated in memory."""
    text = pa.DictionaryArray.from_arrays(pa.array([0] * 2000, pa.int32()), pa.array(["x" * 500_000]))
    names = ["b"] if is_flat else ["b", "b"]
    columns = {"a": pa.StructArray.from_arrays([text] * len(names), names=names)} | ({"a.b": text} if is_flat else {})
    pq.write_table(pa.table(columns), tmp_path / "t.parquet", write_statistics=False, store_schema=False)
    before = pa.total_allocated_bytes()
    with pytest.raises(pa.ArrowInvalid, match="column a.b is there twice"):
        read_parquet(tmp_path / "t.parquet")
    assert pa.total_allocated_bytes() - before < 1 << 20


def test_a_column_with_two_names_is_refused(tmp_path: Path):
    path = tmp_path / "table.parquet"
    pq.write_table(pa.table({"episode_id": ["a", "b"]}), path)
    head, tail = path.read_bytes().rsplit(b"episode_id", 1)
    path.write_bytes(head + b"episode_ix" + tail)
    with pytest.raises(pa.ArrowException, match="column episode_id has another name in a row group"):
        read_parquet(path)


def test_names_with_dots_are_read(tmp_path: Path):
    table = pa.table({"a": pa.array([{"b": "x"}]), "a.c": pa.array(["y"])})
    pq.write_table(table, tmp_path / "t.parquet")
    assert read_parquet(tmp_path / "t.parquet") == table


@pytest.mark.parametrize("place", ["hdfs:/a.parquet", "file:/a.parquet", "mock:/a.parquet"])
def test_a_path_is_no_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str):
    """A dataset that is opened as the current folder may name such a path."""
    monkeypatch.chdir(tmp_path)
    Path(place).parent.mkdir()
    pq.write_table(pa.table({"a": [1]}), tmp_path / place)
    assert read_parquet(Path(place)).num_rows == 1


def test_all_tables_are_opened_here():
    readers = {"ParquetFile", "read_table", "read_schema", "read_metadata", "ParquetDataset"}
    found = {
        name
        for name, path in modules().items()
        for node in ast.walk(parse(path))
        if isinstance(node, ast.Attribute) and node.attr in readers
    }
    assert found == {"nimbus.datagen.files.foreign_tables"}
