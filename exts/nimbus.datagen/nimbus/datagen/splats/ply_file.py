"""Reader of binary PLY files with scalar columns: the header, and each element as a table."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.bounded import check_regular

_TYPES = {
    **dict.fromkeys(("char", "int8"), "i1"),
    **dict.fromkeys(("uchar", "uint8"), "u1"),
    **dict.fromkeys(("short", "int16"), "<i2"),
    **dict.fromkeys(("ushort", "uint16"), "<u2"),
    **dict.fromkeys(("int", "int32"), "<i4"),
    **dict.fromkeys(("uint", "uint32"), "<u4"),
    **dict.fromkeys(("float", "float32"), "<f4"),
    **dict.fromkeys(("double", "float64"), "<f8"),
}
_HEADER_BYTES = 1 << 16
"""Largest accepted size of the header [bytes]."""
_AGAIN = "export it again as a binary PLY"


@dataclass(frozen=True, kw_only=True)
class PlyElement:
    """Element in the header of a file."""

    name: str
    count: int
    """Number of rows."""
    columns: np.dtype[Any]
    """Names and types of the columns."""


def read_elements(path: Path) -> tuple[list[PlyElement], int]:
    """Read the header of a binary little-endian PLY file without lists.

    Returns:
        Elements, and the offset of the first element [bytes].

    Raises:
        InputError: The file is not PLY, has lists or another byte order, or is truncated.
    """
    size = check_regular(path)
    with path.open("rb") as file:
        head = file.read(_HEADER_BYTES)
    text, mark, _ = head.partition(b"end_header\n")
    if not head.startswith(b"ply") or not mark:
        raise InputError("is not a PLY file" if size else "the file is empty", where=str(path), instead=_AGAIN)
    elements: list[tuple[str, int, list[tuple[str, str]]]] = []
    for line in text.decode("ascii", "replace").splitlines()[1:]:
        words = line.split()
        if not words or words[0] in ("comment", "obj_info"):
            continue
        if words[0] == "format" and words[1:2] != ["binary_little_endian"]:
            raise InputError(f"has the PLY format {' '.join(words[1:2])}", where=str(path), instead=_AGAIN)
        if words[0] == "element" and len(words) == 3 and re.fullmatch("[0-9]{1,15}", words[2]):
            elements.append((words[1], int(words[2]), []))
        elif words[0] == "property" and len(words) == 3 and words[1] in _TYPES and elements:
            elements[-1][2].append((words[2], _TYPES[words[1]]))
        elif words[0] != "format":
            raise InputError(
                f"its header has '{line}', which files of splats never have", where=str(path), instead=_AGAIN
            )
    start = len(text) + len(mark)
    try:
        found = [PlyElement(name=name, count=count, columns=np.dtype(columns)) for name, count, columns in elements]
    except ValueError as error:
        raise InputError(f"its header is invalid: {error}", where=str(path), instead=_AGAIN) from None
    # A header can declare any number of rows, so their size is compared with the file before anything is allocated.
    if size < (needed := start + sum(element.count * element.columns.itemsize for element in found)):
        what = f"is truncated: it has {size} of {needed} bytes"
        raise InputError(what, where=str(path), instead="copy or download it again")
    return found, start


def open_table(path: Path, elements: list[PlyElement], start: int, name: str) -> NDArray[Any]:
    """Map the table of an element into memory, and return it.

    Args:
        path: File of the table.
        elements: Elements of the header.
        start: Offset of the first element [bytes].
        name: Name of the element.

    Returns:
        Structured array (rows,) with the columns as fields; empty if the file has no such element.
    """
    for element in elements:
        if element.name == name and element.count:
            # The table is mapped, not read, because callers copy only some of its columns.
            return np.memmap(path, dtype=element.columns, mode="r", offset=start, shape=(element.count,))
        start += element.count * element.columns.itemsize
    return np.empty(0, dtype=np.uint8)


def stack_columns(table: NDArray[Any], names: list[str], kind: Any = np.float32) -> NDArray[Any]:
    """Copy columns of a table into an array (rows, n)."""
    found = np.empty((len(table), len(names)), dtype=kind)
    for column, name in enumerate(names):
        found[:, column] = table[name]
    return found
