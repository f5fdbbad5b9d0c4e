"""Writers of Parquet files with reproducible bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Columns = Mapping[str, tuple[Any, Any]]
"""Values and pyarrow type of each column, by name."""
GROUP_ROWS = 1024
"""Number of rows after which a row group is written; files with very small groups are slow to read and 50 % larger."""
INT, FLOAT, DOUBLE, TEXT, BOOL = pa.int64(), pa.float32(), pa.float64(), pa.string(), pa.bool_()
BYTE = pa.uint8()


def vector(size: int) -> Any:
    """Return the type of a float vector of fixed size."""
    return pa.list_(FLOAT, size)


def array_of(kind: Any, shape: tuple[int, ...]) -> Any:
    """Return the type of an array of fixed shape, as nested lists of fixed sizes."""
    return pa.list_(array_of(kind, shape[1:]), shape[0]) if shape else kind


def nested(kind: Any, depth: int = 1) -> Any:
    """Return the type of nested lists of values, ``depth`` levels deep."""
    return nested(pa.list_(kind), depth - 1) if depth else kind


class ParquetFile:
    """Context manager that writes a Parquet file episode by episode.

    Args:
        path: Path of the new file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: Any = None
        self._group: list[Any] = []

    def write(self, columns: Columns) -> None:
        """Append the rows of an episode; they are not split over row groups."""
        self._group.append(_table(columns))
        if sum(map(len, self._group)) >= GROUP_ROWS:
            self._flush()

    def _flush(self) -> None:
        table = pa.concat_tables(self._group)
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._path, table.schema, compression="snappy")
        self._writer.write_table(table, row_group_size=len(table))
        self._group = []

    def __enter__(self) -> ParquetFile:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if self._group and kind is None:
            self._flush()
        if self._writer is not None:
            self._writer.close()


def write_parquet(path: Path, columns: Columns) -> None:
    """Write a file with one row group."""
    with ParquetFile(path) as file:
        file.write(columns)


def write_table(path: Path, columns: Columns, *, told: Mapping[str, str]) -> None:
    """Write a table for filtering, with zstd compression.

    Args:
        path: Path of the new file.
        columns: Values and type of each column.
        told: Key-value metadata of the file.
    """
    table = _table(columns).replace_schema_metadata(dict(told))
    pq.write_table(table, path, compression="zstd", row_group_size=1 << 16)


def write_index(path: Path, columns: Columns, *, index: str) -> None:
    """Write a table whose column ``index`` pandas uses as index; by default it uses row numbers."""
    table = _table(columns)
    described = [
        {
            "name": name,
            "field_name": name,
            "pandas_type": "unicode" if kind == TEXT else str(kind),
            "numpy_type": "object" if kind == TEXT else str(kind),
            "metadata": None,
        }
        for name, (_, kind) in columns.items()
    ]
    told = {"index_columns": [index], "column_indexes": [], "columns": described, "pandas_version": "2.0.0"}
    pq.write_table(table.replace_schema_metadata({"pandas": json.dumps(told)}), path, compression="snappy")


def _table(columns: Columns) -> Any:
    arrays = [_array(values, kind) for values, kind in columns.values()]
    return pa.Table.from_arrays(arrays, names=list(columns))


def _array(values: Any, kind: Any) -> Any:
    if pa.types.is_fixed_size_list(kind):
        parts = _array(values.reshape(-1, *values.shape[2:]), kind.value_type)
        return pa.FixedSizeListArray.from_arrays(parts, kind.list_size)
    return pa.array(values, kind)
