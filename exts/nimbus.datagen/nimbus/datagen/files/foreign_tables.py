"""Reading of third-party parquet tables, whose content may be a million times larger than the file."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from nimbus.datagen.files.bounded import check_regular
from nimbus.datagen.files.parquet_pages import Page, check_footer, pages

_VALUES, _VALUES_BY_BYTE = 10_000_000, 64
_UNPACKED, _UNPACKED_BY_BYTE = 1 << 28, 64
"""Limits on the values and unpacked bytes of a table: a constant, and a factor on its size."""
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4, "INT64": 8, "DOUBLE": 8, "INT96": 12, "BYTE_ARRAY": 8}
"""Sizes of values in memory, by their type in the file [bytes]; for a text, the size of its dictionary number and its
offset."""
_MOST_PAGES = 1_000_000
_MOST_COLUMNS = 10_000
"""Limits on the pages of all columns, and on the columns, which are searched by name."""
_MARGIN = 100
"""Bytes behind a column that Arrow reads as well in files of old versions, which stated too small a size."""
_OF_BYTES = ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")


def open_table(path: Path, **options: Any) -> Any:
    """Open a parquet file with options of PyArrow.

    PyArrow gets an open file, because it takes a relative path such as ``hdfs:/x.parquet`` for an address, also if the
    file exists, and would load libraries from the current folder for it.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    return pq.ParquetFile(pa.OSFile(os.fsencode(path.absolute())), **options)


def read_parquet(path: Path, *, columns: Sequence[str] | None = None) -> Any:
    """Read a parquet file, or some of its columns, as an Arrow table.

    Raises:
        InputError: There is no regular file.
        OSError: The file cannot be read.
        ArrowException: The table is damaged, declares more data than its size allows, or has a column twice.
    """
    import pyarrow as pa

    size = check_regular(path)
    try:
        with path.open("rb") as source:
            check_footer(source)
    except ValueError as error:
        raise pa.ArrowInvalid(str(error)) from None
    # A dataset's folders may look like partitions; only this file is read.
    file = open_table(path, pre_buffer=False)
    if file.metadata.num_columns > _MOST_COLUMNS:
        raise pa.ArrowInvalid(f"has {file.metadata.num_columns} columns; the limit is {_MOST_COLUMNS}")
    schema = file.schema_arrow
    names = Counter(schema.names)
    # Arrow reads the columns of texts as dictionaries by their paths: of two with the same path, one would be expanded.
    paths = Counter(file.metadata.schema.column(number).path for number in range(file.metadata.num_columns))
    if twice := next((name for name, count in [*names.items(), *paths.items()] if count > 1), ""):
        raise pa.ArrowInvalid(f"column {twice} is there twice")
    wanted = None if columns is None else list(columns)
    # A text that the file stores once may be repeated a million times; read as a dictionary, it is in memory only once.
    file = open_table(path, pre_buffer=False, read_dictionary=_texts(file, path, size))
    table = file.read(columns=wanted, use_threads=False)
    byte_count = sum(_text_bytes(chunk) for column in table.columns for chunk in column.chunks)
    if byte_count > _limit(size):
        raise pa.ArrowInvalid(f"holds texts of {byte_count} bytes, in {size} bytes")
    return table.cast(pa.schema([schema.field(name) for name in table.column_names], schema.metadata))


def _limit(size: int) -> int:
    return _UNPACKED + _UNPACKED_BY_BYTE * size


def _texts(file: Any, path: Path, size: int) -> list[str]:
    """Return the paths of columns of texts or bytes.

    Raises:
        ArrowInvalid: The table declares too much, in its footer or in its pages, or names a column in two ways.
    """
    import pyarrow as pa

    values = unpacked = 0
    found = _pages(file.metadata, path)
    texts: dict[str, None] = {}
    metadata = file.metadata
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for number in range(group.num_columns):
            chunk = group.column(number)
            name = metadata.schema.column(number).path
            if chunk.path_in_schema != name:
                raise pa.ArrowInvalid(f"column {name} has another name in a row group")
            held = next(found)
            count = max(chunk.num_values, group.num_rows, held.value_count)
            values += count
            # Run-length encoded numbers take almost no space in the file, but their full width in memory.
            unpacked += max(chunk.total_uncompressed_size, held.byte_count, count * _WIDTHS.get(chunk.physical_type, 0))
            if chunk.physical_type in _OF_BYTES:
                unpacked += count * max(0, metadata.schema.column(number).length or 0)
                texts[name] = None
    if values > _VALUES + _VALUES_BY_BYTE * size or unpacked > _limit(size):
        raise pa.ArrowInvalid(f"declares {values} values of {unpacked} bytes, in {size} bytes")
    return list(texts)


def _pages(metadata: Any, path: Path) -> Iterator[Page]:
    """Yield the sum of the pages of each column chunk, in order."""
    import pyarrow as pa

    left = _MOST_PAGES
    with path.open("rb") as source:
        for group in map(metadata.row_group, range(metadata.num_row_groups)):
            for chunk in map(group.column, range(group.num_columns)):
                start = min(chunk.data_page_offset, chunk.dictionary_page_offset or chunk.data_page_offset)
                stop = start + chunk.total_compressed_size + _MARGIN
                try:
                    sizes = [*islice(pages(source, start, stop, chunk.num_values), left)]
                except (ValueError, OSError) as error:
                    raise pa.ArrowInvalid(str(error)) from None
                if not (left := left - len(sizes)):
                    raise pa.ArrowInvalid(f"more than {_MOST_PAGES} pages")
                yield Page(sum(page.value_count for page in sizes), sum(page.byte_count for page in sizes))


def _text_bytes(array: Any) -> int:
    """Return the size of all texts that an array refers to [bytes]."""
    import pyarrow.compute as pc

    total = 0
    for leaf in _leaves(array):
        lengths = pc.fill_null(pc.binary_length(leaf.dictionary), 0)  # pyright: ignore[reportAttributeAccessIssue]
        total += pc.sum(lengths.take(leaf.indices.drop_null())).as_py() or 0  # pyright: ignore[reportAttributeAccessIssue]
    return total


def _leaves(array: Any) -> Iterator[Any]:
    """Yield the arrays that hold each text once, at any depth."""
    import pyarrow as pa

    kind = array.type
    if pa.types.is_dictionary(kind):
        yield array
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        yield from _leaves(array.flatten())
    elif pa.types.is_map(kind):
        yield from (leaf for part in (array.keys, array.items) for leaf in _leaves(part))
    elif pa.types.is_struct(kind):
        for part in array.flatten():
            yield from _leaves(part)
