"""Readers of untrusted tables; each error names its location."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nimbus.datagen.datasets.quality.finding import Unreadable
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.bounded import parse_plain, read_text
from nimbus.datagen.files.foreign_tables import read_parquet

_ROWS_BYTES = 1 << 31
"""Largest file of JSON rows [bytes]; statistics of 100,000 episodes take some 100 MB."""
_LARGEST = 2**53
"""Largest whole number in a column."""
_LATEST = 1e9
"""Largest time in a file [s], about 30 years."""


def read_table(path: Path, *, columns: Sequence[str] | None = None) -> Any:
    """Read a Parquet file, or some of its columns.

    Raises:
        Unreadable: The table is missing or damaged, declares too many values for its size, or has a column twice.
    """
    try:
        return read_parquet(path, columns=columns)
    except (OSError, pa.ArrowException) as error:
        raise Unreadable(_short(path), f"cannot be read: {error}") from None
    except InputError as error:
        raise Unreadable(_short(path), error.what) from None


def check_columns(table: Any, wanted: Mapping[str, str]) -> None:
    """Check the types and values of columns; absent columns are ignored.

    Args:
        table: Arrow table.
        wanted: Type by name: ``whole`` (whole numbers from 0), ``time`` (numbers), ``text``, or ``texts`` (lists of
            texts).

    Raises:
        Unreadable: A column has another type, missing values, or values out of range.
    """
    for name in (name for name in table.column_names if name in wanted):
        values, kind = table.column(name), wanted[name]
        if not _TYPES[kind](values.type):
            raise Unreadable(name, f"column {name} has type {values.type}, expected {_WORDS[kind]}")
        if values.null_count:
            raise Unreadable(name, f"column {name} has rows without a value")
        if kind == "time" and not (np.abs(values.to_numpy()) <= _LATEST).all():
            raise Unreadable(name, f"column {name} has values that are not valid times")
        if kind == "whole" and len(values):
            low, high = values.to_numpy().min(), values.to_numpy().max()
            if low < 0 or high > _LARGEST:
                raise Unreadable(name, f"column {name} has the value {low if low < 0 else high}")


def _is_list_of_texts(kind: Any) -> bool:
    return (pa.types.is_list(kind) or pa.types.is_large_list(kind)) and (
        pa.types.is_string(kind.value_type) or pa.types.is_large_string(kind.value_type)
    )


_TYPES = {
    "whole": pa.types.is_integer,
    "time": lambda kind: pa.types.is_floating(kind) or pa.types.is_integer(kind),
    "text": lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind),
    "texts": _is_list_of_texts,
}
_WORDS = {"whole": "whole numbers", "time": "numbers", "text": "texts", "texts": "lists of texts"}


def column(table: Any, name: str) -> NDArray[Any]:
    """Return a column as an array (T,) or (T, D).

    Raises:
        Unreadable: The column is missing, or its rows differ in size.
    """
    if name not in table.column_names:
        raise Unreadable(name, "the column is missing")
    values = table.column(name).combine_chunks()
    if not (pa.types.is_list(values.type) or pa.types.is_fixed_size_list(values.type)):
        return values.to_numpy(zero_copy_only=False)
    inner = values
    while pa.types.is_list(inner.type) or pa.types.is_fixed_size_list(inner.type):
        inner = inner.flatten()
    flat = inner.to_numpy(zero_copy_only=False)
    if len(values) and (not len(flat) or len(flat) % len(values)):
        raise Unreadable(name, "rows differ in size")
    return flat.reshape(len(values), len(flat) // max(1, len(values)))


def numbers(table: Any, name: str) -> NDArray[Any]:
    """Return a numeric column as an array (T,) or (T, D).

    Raises:
        Unreadable: The column is missing, its rows differ in size, or it is not numeric.
    """
    values = column(table, name)
    if values.dtype.kind not in "fiub":
        raise Unreadable(name, f"column {name} has type {table.column(name).type}, expected numbers")
    return values


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Read a file with one JSON object per line.

    Raises:
        Unreadable: The file is missing or damaged.
    """
    try:
        rows = [parse_plain(line, where="") for line in read_text(path, limit=_ROWS_BYTES).splitlines()]
    except InputError as error:
        raise Unreadable(_short(path), error.what) from None
    if odd := next((number for number, row in enumerate(rows, start=1) if not isinstance(row, dict)), 0):
        raise Unreadable(_short(path), f"line {odd} is not an object")
    return rows


def wordings_of(path: Path) -> dict[int, Any]:
    """Read the instructions by ``task_index``.

    The texts are the index of the table, as pandas defines it; without index metadata, the index is the row number.

    Raises:
        Unreadable: The file is missing or damaged.
    """
    table = read_table(path)
    check_columns(table, {"task_index": "whole"})
    indices = column(table, "task_index").tolist()
    names = [name for name in _index_columns(table) if isinstance(name, str) and name in table.column_names]
    texts = table.column(names[0]).to_pylist() if names else list(range(len(indices)))
    return dict(zip(indices, texts, strict=True))


def _index_columns(table: Any) -> list[Any]:
    note = (table.schema.metadata or {}).get(b"pandas", b"{}").decode(errors="replace")
    try:
        told = parse_plain(note, where="")
    except InputError as error:
        raise Unreadable("meta/tasks.parquet", f"the metadata of pandas are invalid: {error.what}") from None
    names = told.get("index_columns") if isinstance(told, dict) else None
    return names if isinstance(names, list) else []


def _short(path: Path) -> str:
    return "/".join(path.parts[-4:]) if path.suffix == ".parquet" else "/".join(path.parts[-2:])
