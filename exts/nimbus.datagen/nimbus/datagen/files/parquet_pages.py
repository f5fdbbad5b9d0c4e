"""Sizes of the pages of a third-party parquet file, read from the pages themselves before Arrow unpacks them.

A page may hold any number of values, whatever the footer states, and Arrow unpacks it whole. The headers are Thrift
structures in the compact protocol: https://parquet.apache.org/docs/file-format/data-pages
"""

from __future__ import annotations

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
_I32 = 5
_Fields = dict[int, Any]


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
        at += 1
        if step := kind >> 4:
            number += step
        else:
            number, at = _integer(data, at)
        if number in found or not 0 < number <= _LARGEST_FIELD:
            raise ValueError("the header of a page is damaged")
        found[number], at = (None, at) if kind & 15 in _TRUTHS else _value(data, at, kind & 15, depth)
    return found, at + 1


def _value(data: bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    """Return a number of 32 bits or a structure, None for other values, and the position behind it."""
    if depth > _DEEPEST:
        raise ValueError("the header of a page is nested too deeply")
    if kind == _STRUCT:
        return _fields(data, at, depth + 1)
    if kind in _INTEGERS:
        value, at = _integer(data, at)
        return value if kind == _I32 else None, at
    if kind == _BINARY:
        size, at = _unsigned(data, at)
        return None, at + size
    if kind in _LISTS:
        count, inner, at = data[at] >> 4, data[at] & 15, at + 1
        if count == 15:
            count, at = _unsigned(data, at)
        for _ in range(count):
            at = at + 1 if inner in _TRUTHS else _value(data, at, inner, depth + 1)[1]
            data[at]  # ends the loop behind the end
        return None, at
    if kind in (_BYTE, _DOUBLE):
        return None, at + (1 if kind == _BYTE else 8)
    raise ValueError("the header of a page is damaged")


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
            raise ValueError("the header of a page is damaged")
