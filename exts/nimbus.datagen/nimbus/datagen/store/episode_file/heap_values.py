"""Types and values of variable length in the headers of a foreign HDF5 file, parsed before the HDF5 library reads them.

Such values lie in global heaps. The library walks through a heap without a limit, and reads a value once for each
reference to it. Only values of variable length of a plain type are accepted, not such values inside other types.
"""

from __future__ import annotations

import math
from functools import lru_cache
from struct import unpack_from
from typing import NamedTuple

_DEEPEST = 4
"""Largest depth of nested types; complex numbers have two."""
_TEXT, _OPAQUE, _COMPOUND, _REFERENCE, _ENUM, _VARIABLE, _ARRAY = 3, 5, 6, 7, 8, 9, 10
"""Classes of types."""
_EXTRA = {0: 4, 1: 12, 2: 2, _TEXT: 0, 4: 4}
"""Bytes of properties by the class of plain types."""
_REFERENCE_SIZE = 16
"""Size of a value of variable length where it is used: its length, and the address and number of its object [bytes]."""
_MOST_DIMENSIONS = 32
_HEAP_HEAD = 16
_LEAST_HEAP, _LARGEST_HEAP = 4096, 64 << 20
"""Smallest and largest size of a heap [bytes]; the library reads it whole. A heap is as large as its largest text."""
_MOST_OBJECTS = 1 << 16


class HeapReference(NamedTuple):
    """Reference to a value of variable length."""

    byte_count: int
    """Size of the value [bytes]."""
    heap: int
    """Address of the heap."""
    number: int
    """Number of the value in the heap."""


@lru_cache(maxsize=64)  # most attributes of a file have one of two types
def element_size(body: bytes) -> int:
    """Return the size of the elements of a type of variable length [bytes]; 0 for a type of fixed size.

    Args:
        body: Datatype message.

    Raises:
        ValueError: The type is nested too deeply, or values of variable length are inside another type.
    """
    if body[0] & 15 != _VARIABLE:
        _skip_type(body, 0, 0)
        return 0
    if unpack_from("<I", body, 4)[0] != _REFERENCE_SIZE:
        raise ValueError("a type of variable length is damaged")
    _skip_type(body, 8, 1)
    size: int = unpack_from("<I", body, 12)[0]
    if not size:
        raise ValueError("a type of variable length has elements of 0 bytes")
    return size


def references(data: bytes, count: int, size: int) -> list[HeapReference]:
    """Return the references of values of variable length that are not empty.

    Args:
        data: The values as stored.
        count: Number of values.
        size: Size of their elements [bytes].
    """
    if count * _REFERENCE_SIZE > len(data):
        raise ValueError("an attribute ends early")
    parts = [unpack_from("<IQI", data, _REFERENCE_SIZE * place) for place in range(count)]
    return [HeapReference(length * size, heap, number) for length, heap, number in parts if heap]


def attribute_references(body: bytes) -> list[HeapReference]:
    """Return the references of an attribute message.

    Raises:
        ValueError: It is damaged, or its type is refused.
    """
    version, flags = body[0], body[1]
    if version not in (1, 2, 3) or (version > 1 and flags):
        raise ValueError("an attribute with a shared type")
    name, kind, shape = unpack_from("<HHH", body, 2)
    aligned = 8 if version == 1 else 1
    at = (9 if version == 3 else 8) + -(-name // aligned) * aligned
    size = element_size(body[at : at + kind])
    if not size:
        return []
    at += -(-kind // aligned) * aligned
    count = math.prod(shape_of(body[at : at + shape]))
    return references(body[at + -(-shape // aligned) * aligned :], count, size)


def shape_of(body: bytes) -> tuple[int, ...]:
    """Return the shape of a dataspace message; ``(0,)`` for none."""
    version, rank = body[0], body[1]
    if version not in (1, 2) or rank > _MOST_DIMENSIONS:
        raise ValueError("a damaged shape")
    if version == 2 and body[3] == 2:
        return (0,)
    if version == 2 and (body[3] == 0) != (rank == 0):
        raise ValueError("a damaged shape")
    return unpack_from(f"<{rank}Q", body, 8 if version == 1 else 4)


def heap_size(head: bytes) -> int:
    """Return the size of a global heap from its first bytes [bytes]."""
    size: int = unpack_from("<Q", head, 8)[0]
    if head[:4] != b"GCOL" or head[4] != 1 or not _LEAST_HEAP <= size <= _LARGEST_HEAP:
        raise ValueError("a damaged global heap")
    return size


def heap_objects(heap: bytes) -> dict[int, int]:
    """Return the size of each object of a global heap by its number [bytes].

    Raises:
        ValueError: The library would not come to the end of the heap.
    """
    found, at = dict[int, int](), _HEAP_HEAD
    while at + 16 <= len(heap):  # a shorter rest is free space without a header
        number, _, size = unpack_from("<HHxxxxQ", heap, at)
        step = 16 + (size + 7) // 8 * 8 if number else size
        if step < 16 or at + step > len(heap) or number in found or len(found) >= _MOST_OBJECTS:
            raise ValueError("a damaged global heap")
        found[number] = size
        at += step
    return found


def _skip_type(body: bytes, at: int, depth: int) -> int:
    """Check the type at a position of a message; return the position behind it.

    The layout of types: https://support.hdfgroup.org/documentation/hdf5/latest/_f_m_t3.html#DatatypeMessage
    """
    if depth > _DEEPEST:
        raise ValueError("a type is nested too deeply")
    kind, version = body[at] & 15, body[at] >> 4
    bits, size = int.from_bytes(body[at + 1 : at + 4], "little"), unpack_from("<I", body, at + 4)[0]
    at += 8
    if kind in _EXTRA:
        return at + _EXTRA[kind]
    if kind == _OPAQUE:
        return at + (bits & 255)
    if kind == _REFERENCE and not bits & 15:  # the address of an object, which is not followed
        return at
    if kind == _ARRAY:
        return _skip_type(body, at + (4 if version < 3 else 1) + body[at] * (8 if version < 3 else 4), depth + 1)
    if kind == _ENUM:
        base_size = unpack_from("<I", body, at + 4)[0]
        at = _skip_type(body, at, depth + 1)
        for _ in range(bits & 0xFFFF):
            at = _skip_name(body, at, version)
        return at + base_size * (bits & 0xFFFF)
    if kind == _COMPOUND:
        for _ in range(bits & 0xFFFF):
            at = _skip_name(body, at, version)
            at += 4 if version < 3 else (max(size.bit_length(), 1) + 7) // 8
            at = _skip_type(body, at + (28 if version == 1 else 0), depth + 1)
        return at
    raise ValueError(f"a type of class {kind} that is not read, or of variable length inside another type")


def _skip_name(body: bytes, at: int, version: int) -> int:
    length = body.index(b"\0", at) - at
    return at + (length + 8) // 8 * 8 if version < 3 else at + length + 1
