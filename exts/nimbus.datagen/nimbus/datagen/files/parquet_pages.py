"""Sizes of the footer and the pages of a third-party parquet file, read before Arrow does.

Arrow follows the levels of a schema by recursion, and takes a hundred times the size of a footer in memory. A page may
hold any number of values, whatever the footer states, and Arrow unpacks it whole. Footers and headers of pages are
Thrift structures in the compact protocol: https://parquet.apache.org/docs/file-format
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

_DICTIONARY = 2
_VALUES_OF = {0: 5, _DICTIONARY: 7, 3: 8}
"""Field of a page's header with a structure that states the number of values, by the type of the page."""
_KIND, _UNPACKED, _PACKED, _VALUES = 1, 2, 3, 1
"""Fields of a page's header, and the first one of the structures inside it."""
_FIRST_READ, _LARGEST_HEADER = 256, 1 << 20
"""Bytes that are read for a header at first and at most; it may contain the smallest and largest text of its page."""
_DEEPEST, _LARGEST_FIELD = 8, 1000
_TRUTHS, _BYTE, _INTEGERS, _DOUBLE, _BINARY, _LISTS, _STRUCT = (1, 2), 3, (4, 5, 6), 7, 8, (9, 10), 12
"""Types of Thrift in the compact protocol; headers have no maps."""
_I32, _I64, _LIST = 5, 6, 9
_Fields = dict[int, Any]
_SCHEMA, _GROUPS, _CHUNKS, _CHILDREN = (2,), (4,), (4, 1), 5
"""Paths of fields in the footer to the lists of schema elements, row groups and column chunks, and the field of a
schema element with the number of its children."""
_COUNTED = {_SCHEMA: "elements of its schema", _GROUPS: "row groups", _CHUNKS: "column chunks"}
_ITEMS = {
    **dict.fromkeys([_SCHEMA, _GROUPS, _CHUNKS, (5,), (7,), (4, 4), (4, 1, 3, 8), (4, 1, 3, 13)], _STRUCT),
    **dict.fromkeys([(4, 1, 3, 3), (4, 1, 8, 2, 1)], _BINARY),
    **dict.fromkeys([(4, 1, 3, 2), (4, 1, 3, 17, 2)], _I32),
    **dict.fromkeys([(4, 1, 3, 16, 2), (4, 1, 3, 16, 3)], _I64),
}
"""Types of the items of all lists in the footer, by path. Arrow's reader takes them for granted."""
_MOST_ELEMENTS, _DEEPEST_SCHEMA, _MOST_GROUPS = 40_000, 32, 100_000
_FREE_CHUNKS, _LEAST_CHUNK = 100_000, 40
"""Number of column chunks that is always accepted, and bytes of footer for each further one; Arrow takes about 1 kB."""


def check_footer(file: BinaryIO) -> None:
    """Check the number and depth of the structures that a footer declares.

    Raises:
        ValueError: The footer is damaged, or they are too many.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - 8))
    tail = file.read(8)
    length = int.from_bytes(tail[:4], "little")
    if tail[4:] != b"PAR1" or length > size - 8:
        return  # Arrow refuses such a file
    file.seek(size - 8 - length)
    footer = _Footer(file.read(length))
    try:
        footer.read()
    except IndexError:
        raise ValueError("its footer ends early") from None


class _Footer:
    """Walk of a footer that counts its structures."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        most_chunks = _FREE_CHUNKS + len(data) // _LEAST_CHUNK
        self._limits = {_SCHEMA: _MOST_ELEMENTS, _GROUPS: _MOST_GROUPS, _CHUNKS: most_chunks}
        self._counts = dict.fromkeys(self._limits, 0)
        self._open: list[int] = []
        """Number of missing children of each element of the schema around the next one."""

    def read(self) -> None:
        """Read the footer, and check its counts.

        Raises:
            ValueError: The footer is damaged, or declares too much.
            IndexError: It ends early.
        """
        self._fields(0, ())

    def _fields(self, at: int, path: tuple[int, ...]) -> int:
        """Read a structure; return the position behind it."""
        data, number, found = self._data, 0, set[int]()
        children = 0
        while kind := data[at]:
            number, at = _field(data, at, number)
            if number in found:
                raise ValueError("its structures are damaged")
            found.add(number)
            kind &= 15
            if kind in _TRUTHS:
                continue
            if path == _SCHEMA and number == _CHILDREN and kind == _I32:
                children = _integer(data, at)[0]
            at = self._value(at, kind, (*path, number))
        if path == _SCHEMA:
            self._count_element(children)
        return at + 1

    def _value(self, at: int, kind: int, path: tuple[int, ...]) -> int:
        """Read a value; return the position behind it."""
        data = self._data
        if len(path) > _DEEPEST:
            raise ValueError("its structures are nested too deeply")
        if kind == _STRUCT:
            return self._fields(at, path)
        if kind not in _LISTS:
            return _value(data, at, kind, 0)[1]
        count, inner, at = _list(data, at)
        if count and kind == _LIST and inner != _ITEMS.get(path, inner):
            raise ValueError("its structures are damaged")
        if path in self._counts:
            self._counts[path] += count
            if self._counts[path] > (limit := self._limits[path]):
                raise ValueError(f"declares {self._counts[path]} {_COUNTED[path]}; the limit is {limit}")
        for _ in range(count):
            at = at + 1 if inner in _TRUTHS else self._value(at, inner, path if inner == _STRUCT else (*path, 0))
            data[at]  # ends the loop behind the end
        return at

    def _count_element(self, children: int) -> None:
        """Follow the depth of the schema, whose elements are in the order of a walk."""
        while self._open and not self._open[-1]:
            self._open.pop()
        if self._open:
            self._open[-1] -= 1
        if children > 0:
            self._open.append(children)
        if len(self._open) > _DEEPEST_SCHEMA:
            raise ValueError(f"has a schema of more than {_DEEPEST_SCHEMA} levels")


class Page(NamedTuple):
    """Declared sizes of a page."""

    value_count: int
    """Number of values; in a column of lists, the number of all their elements."""
    byte_count: int
    """Size when unpacked [bytes]."""


def pages(file: BinaryIO, start: int, stop: int, value_count: int) -> Iterator[Page]:
    """Yield the pages of a column that Arrow would unpack, including its dictionary.

    Args:
        file: The parquet file.
        start: Position of the column's first page [bytes].
        stop: Position behind its last page [bytes].
        value_count: Number of values in the footer; Arrow unpacks pages until it has as many.

    Raises:
        ValueError: A header is damaged.
    """
    seen = 0
    while seen < value_count and start < stop:
        header, size = _header(file, start)
        kind, packed = _number(header, _KIND), _number(header, _PACKED)
        count = _number(header.get(_VALUES_OF[kind]), _VALUES) if kind in _VALUES_OF else 0
        yield Page(count, _number(header, _UNPACKED))
        seen += 0 if kind == _DICTIONARY else count
        start += size + packed


def _number(fields: _Fields | None, number: int) -> int:
    value = fields.get(number) if isinstance(fields, dict) else None
    if not isinstance(value, int) or value < 0:
        raise ValueError("the header of a page lacks a size")
    return value


def _header(file: BinaryIO, start: int) -> tuple[_Fields, int]:
    """Read the header at a position; return its fields and its size [bytes]."""
    size = _FIRST_READ
    while True:
        file.seek(start)
        data = file.read(size)
        try:
            return _fields(data, 0, 0)
        except IndexError:
            if len(data) < size or size >= _LARGEST_HEADER:
                raise ValueError("the header of a page has no end") from None
            size *= 16


def _fields(data: bytes, at: int, depth: int) -> tuple[_Fields, int]:
    """Return the numbers of 32 bits and the structures of a structure by field, and the position behind it."""
    found, number = _Fields(), 0
    while kind := data[at]:
        number, at = _field(data, at, number)
        if number in found:
            raise ValueError("its structures are damaged")
        found[number], at = (None, at) if kind & 15 in _TRUTHS else _value(data, at, kind & 15, depth)
    return found, at + 1


def _value(data: bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    """Return a number of 32 bits or a structure, None for other values, and the position behind it."""
    if depth > _DEEPEST:
        raise ValueError("its structures are nested too deeply")
    if kind == _STRUCT:
        return _fields(data, at, depth + 1)
    if kind in _INTEGERS:
        value, at = _integer(data, at)
        return value if kind == _I32 else None, at
    if kind == _BINARY:
        size, at = _unsigned(data, at)
        return None, at + size
    if kind in _LISTS:
        count, inner, at = _list(data, at)
        for _ in range(count):
            at = at + 1 if inner in _TRUTHS else _value(data, at, inner, depth + 1)[1]
            data[at]  # ends the loop behind the end
        return None, at
    if kind in (_BYTE, _DOUBLE):
        return None, at + (1 if kind == _BYTE else 8)
    raise ValueError("its structures are damaged")


def _field(data: bytes, at: int, number: int) -> tuple[int, int]:
    """Return the number of a field and the position of its value, given the number of the field before."""
    if step := data[at] >> 4:
        number, at = number + step, at + 1
    else:
        number, at = _integer(data, at + 1)
    if not 0 < number <= _LARGEST_FIELD:
        raise ValueError("its structures are damaged")
    return number, at


def _list(data: bytes, at: int) -> tuple[int, int, int]:
    """Return the number of items of a list, their type, and the position of the first."""
    count, inner, at = data[at] >> 4, data[at] & 15, at + 1
    if count == 15:
        count, at = _unsigned(data, at)
    return count, inner, at


def _integer(data: bytes, at: int) -> tuple[int, int]:
    value, at = _unsigned(data, at)
    value &= 0xFFFF_FFFF  # as Thrift does
    return value >> 1 ^ -(value & 1), at


def _unsigned(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if not data[at - 1] & 128:
            return value, at
        if shift > 63:
            raise ValueError("its structures are damaged")
