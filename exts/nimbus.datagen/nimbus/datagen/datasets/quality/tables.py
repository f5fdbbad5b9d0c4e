"""Tables of a dataset that somebody else wrote: whatever is wrong with one is told with its place."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from nimbus.datagen.datasets.quality.finding import Unreadable


def read_table(path: Path) -> Any:
    """A parquet file.

    Raises:
        Unreadable: It is missing or damaged.
    """
    _refuse_what_is_no_file(path)
    try:
        # A dataset's folders may be named like partitions; only this file is wanted.
        return pq.ParquetFile(path, pre_buffer=False).read(use_threads=False)
    except (OSError, pa.ArrowException) as error:
        raise Unreadable(_short(path), f"cannot be read: {error}") from None


def check_columns(table: Any, wanted: Mapping[str, str]) -> None:
    """Refuse columns of another type, or with gaps; those that are not there are passed over.

    Args:
        table: An Arrow table.
        wanted: ``whole`` (numbers), ``time`` (finite numbers) or ``texts`` (a list of them), by name.

    Raises:
        Unreadable: There is one.
    """
    for name in (name for name in table.column_names if name in wanted):
        values, kind = table.column(name), wanted[name]
        if not _TYPES[kind](values.type):
            raise Unreadable(name, f"column {name} holds {values.type}, expected {_WORDS[kind]}")
        if values.null_count:
            raise Unreadable(name, f"column {name} has rows without a value")
        if kind == "time" and not np.isfinite(values.to_numpy()).all():
            raise Unreadable(name, f"column {name} has values that are no numbers")


def _is_list_of_texts(kind: Any) -> bool:
    return (pa.types.is_list(kind) or pa.types.is_large_list(kind)) and (
        pa.types.is_string(kind.value_type) or pa.types.is_large_string(kind.value_type)
    )


_TYPES = {
    "whole": pa.types.is_integer,
    "time": lambda kind: pa.types.is_floating(kind) or pa.types.is_integer(kind),
    "texts": _is_list_of_texts,
}
_WORDS = {"whole": "whole numbers", "time": "numbers", "texts": "lists of texts"}


def column(table: Any, name: str) -> NDArray[Any]:
    """A column as (T,) or (T, D).

    Raises:
        Unreadable: There is none of that name, or its rows differ in size.
    """
    if name not in table.column_names:
        raise Unreadable(name, "no such column")
    values = table.column(name).combine_chunks()
    if not (pa.types.is_list(values.type) or pa.types.is_fixed_size_list(values.type)):
        return values.to_numpy(zero_copy_only=False)
    flat = values.flatten().to_numpy(zero_copy_only=False)
    if len(values) and len(flat) % len(values):
        raise Unreadable(name, "rows differ in size")
    return flat.reshape(len(values), -1)


def read_rows(path: Path) -> list[dict[str, Any]]:
    """A file of one JSON object a line.

    Raises:
        Unreadable: It is missing or damaged.
    """
    _refuse_what_is_no_file(path)
    try:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError) as error:
        raise Unreadable(_short(path), f"cannot be read: {error}") from None
    if odd := next((number for number, row in enumerate(rows, start=1) if not isinstance(row, dict)), 0):
        raise Unreadable(_short(path), f"line {odd} is no object")
    return rows


def wordings_of(path: Path) -> dict[int, Any]:
    """Wordings by index as pandas reads them: without its note on the index they are row numbers.

    Raises:
        Unreadable: It is missing or damaged.
    """
    table = read_table(path)
    told = json.loads((table.schema.metadata or {}).get(b"pandas", b"{}"))
    names = [name for name in told.get("index_columns", []) if isinstance(name, str) and name in table.column_names]
    numbers = column(table, "task_index").tolist()
    texts = table.column(names[0]).to_pylist() if names else list(range(len(numbers)))
    return dict(zip(numbers, texts, strict=True))


def _refuse_what_is_no_file(path: Path) -> None:
    """A pipe would be waited for."""
    if path.exists() and not path.is_file():
        raise Unreadable(_short(path), "cannot be read: it is no file")


def _short(path: Path) -> str:
    return "/".join(path.parts[-4:]) if path.suffix == ".parquet" else "/".join(path.parts[-2:])
