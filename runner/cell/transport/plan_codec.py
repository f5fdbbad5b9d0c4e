"""Binary format of plans between planner and renderer: a JSON header and raw arrays, with a checksum over all.

```
prefix   magic, version, checksum, length of all, length of the header
header   JSON: every field of the item, arrays by number; type, shape and offset of each array
arrays   little-endian, C order, each at a multiple of 64 bytes
```
The fields are read from the dataclasses, so that a new field is always included. The scene is not sent.
"""

from __future__ import annotations

import json
import math
import struct
import zlib
from collections.abc import Iterable
from typing import TypeAlias

import numpy as np

from nimbus.datagen.files.codec import flatten, restore
from nimbus.datagen.stages import Planned, Randomized, Scene

Part: TypeAlias = bytes | memoryview

VERSION = 2
_MAGIC = b"NIMBPLAN"
_PREFIX = struct.Struct("<8sIIQQ")
_CHECKED = 16
"""Offset at which the bytes covered by the CRC-32 checksum begin."""
_ALIGNMENT = 64
"""Alignment of arrays [bytes], a cache line and the widest vector load."""
_MOST_DIMENSIONS, _LONGEST_DIMENSION = 8, 2**31
_DTYPES = frozenset({"|b1", *("|u1", "<u2", "<u4", "<u8"), *("|i1", "<i2", "<i4", "<i8"), *("<f2", "<f4", "<f8")})
_KINDS: dict[str, type[Planned] | type[Randomized]] = {"planned": Planned, "randomized": Randomized}
_NOT_SENT = frozenset({"scene"})


class WireError(ValueError):
    """Raised for bytes that :func:`encode` did not write."""


def encode(item: Planned | Randomized) -> list[Part]:
    """Encode an item as parts with ``len`` in bytes; arrays are copied only where necessary.

    Raises:
        TypeError: A field holds a value of another type than declared.
    """
    kind = next(name for name, known in _KINDS.items() if type(item) is known)
    fields, arrays = flatten(item, skip=_NOT_SENT)
    table, contents, end = [], [], 0
    for array in arrays:
        content = np.asarray(array, order="C").reshape(-1).view(np.uint8).data
        table.append({"dtype": array.dtype.str, "shape": array.shape, "offset": end})
        padding = -len(content) % _ALIGNMENT
        contents += [content, bytes(padding)]
        end += len(content) + padding
    header = json.dumps({"kind": kind, "fields": fields, "arrays": table}, separators=(",", ":")).encode()
    header = header.ljust(len(header) + -(_PREFIX.size + len(header)) % _ALIGNMENT)
    sizes = (_PREFIX.size + len(header) + end, len(header))
    unchecked = _PREFIX.pack(_MAGIC, VERSION, 0, *sizes)
    # The checksum covers the lengths as well, so that a damaged length is found before it is used.
    checksum = _checksum([unchecked[_CHECKED:], header, *contents])
    return [_PREFIX.pack(_MAGIC, VERSION, checksum, *sizes), header, *contents]


def decode(buffer: bytes | memoryview, scene: Scene) -> Planned | Randomized:
    """Decode an item; its arrays are copies, so that the buffer may be reused.

    Args:
        buffer: All parts, concatenated.
        scene: Scene of the returned item.

    Raises:
        WireError: The bytes are damaged, of another version, or of another kind of item.
    """
    content = bytearray(buffer)  # a copy: the buffer may change between the check and the read
    start = _check(content)
    try:
        header = json.loads(content[_PREFIX.size : start])
        body = memoryview(content)[start:]
        arrays = [_array(body, number, **entry) for number, entry in enumerate(header["arrays"])]
        return restore(_KINDS[header["kind"]], header["fields"], arrays, given={"scene": scene})
    except WireError:
        raise
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise WireError(f"invalid header: {type(error).__name__}: {error}") from None


def _check(content: bytearray) -> int:
    """Check everything but the contents of the header; returns the offset of its end."""
    if len(content) < _PREFIX.size:
        raise WireError(f"{len(content)} bytes are too short for a plan")
    magic, version, checksum, length, header_bytes = _PREFIX.unpack_from(content)
    if magic != _MAGIC:
        raise WireError(f"begins with {magic!r}, not {_MAGIC!r}")
    if version != VERSION:
        raise WireError(f"version {version}, this is version {VERSION}")
    if length != len(content):
        raise WireError(f"{len(content)} bytes, {length} were written")
    if (actual := _checksum([memoryview(content)[_CHECKED:]])) != checksum:
        raise WireError(f"checksum {actual:08x}, expected {checksum:08x}")
    if _PREFIX.size + header_bytes > length:
        raise WireError(f"a header of {header_bytes} bytes is longer than the plan of {length}")
    return _PREFIX.size + header_bytes


def _array(content: memoryview, number: int, *, dtype: str, shape: list[int], offset: int) -> np.ndarray:
    """Return one array as a view, after checking that it lies inside ``content``."""
    if dtype not in _DTYPES:
        raise WireError(f"array {number}: type {dtype!r} is not allowed")
    numbers = [*shape, offset]
    if len(shape) > _MOST_DIMENSIONS or not all(map(_is_size, numbers)):
        raise WireError(f"array {number}: shape {shape} at {offset}")
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if offset % _ALIGNMENT or offset + size > len(content):
        raise WireError(f"array {number}: {size} bytes at {offset} of {len(content)}")
    return np.ndarray(shape, dtype, buffer=content, offset=offset)


def _is_size(number: object) -> bool:
    return type(number) is int and 0 <= number < _LONGEST_DIMENSION


def _checksum(parts: Iterable[Part]) -> int:
    checksum = 0
    for part in parts:
        checksum = zlib.crc32(part, checksum)
    return checksum
