"""Reader of SPZ files: versions 1 to 3 are one gzip stream, and version 4 has a zstd stream per attribute.

The format is described at https://github.com/nianticlabs/spz (MIT). Its frame is that of glTF: x right, y up, z back.
"""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.arrays import Float32Array
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.bounded import read_bytes
from nimbus.datagen.splats.cloud import FIRST_HARMONIC, MOST_SPLATS, SplatCloud, unit_quaternions

_MAGIC = b"NGSP"
_FILE_BYTES = 1 << 29
_COEFFICIENTS = (0, 3, 8, 15, 24)
"""Number of coefficients per channel, by the degree of the harmonics."""
_COLOR_SCALE = 0.15
"""Scale of the stored constant harmonic."""
_ANTIALIASED = 1
"""Flag of a file whose training was antialiased."""
_GZIP = 16 + zlib.MAX_WBITS
_AGAIN = "copy or download it again"


def read_spz(path: Path) -> SplatCloud:
    """Read splats that are stored in 15 to 20 bytes each, plus harmonics.

    Raises:
        InputError: The file is not SPZ, has an unknown version, is truncated, or is too large to render.
    """
    content = read_bytes(path, limit=_FILE_BYTES)
    # Only version 4 starts with the magic number; in earlier versions, it is inside of the gzip stream.
    if content[:4] == _MAGIC and len(content) >= 32:
        _, version, count, degree, fraction, flags, streams, table = struct.unpack("<4sIIBBBBI", content[:20])
        sizes = _sizes(path, version, count, degree)
        blocks = _unpack_streams(path, content, table, streams, sizes)
    else:
        content = _inflate(path, content)
        _, version, count, degree, fraction, flags, _ = struct.unpack("<4sIIBBBB", content[:16])
        sizes = _sizes(path, version, count, degree)
        ends = 16 + np.cumsum([0, *sizes])
        if len(content) < ends[-1]:
            raise InputError(f"is truncated: {len(content)} of {ends[-1]} bytes", where=str(path), instead=_AGAIN)
        blocks = [content[begin:end] for begin, end in zip(ends, ends[1:], strict=False)]
    return _decode(version, degree, fraction, bool(flags & _ANTIALIASED), blocks)


def _inflate(path: Path, content: bytes) -> bytes:
    """Unpack a gzip stream, up to the size of the largest accepted file."""
    most = 16 + sum(_sizes(path, 3, MOST_SPLATS, 4))
    unpacking = zlib.decompressobj(_GZIP)
    try:
        # The output is limited, because a small stream can expand to any size.
        found = unpacking.decompress(content, most)
    except zlib.error as error:
        raise InputError(f"is not an SPZ file: {error}", where=str(path), instead=_AGAIN) from None
    if not unpacking.eof and not unpacking.unconsumed_tail:
        raise InputError("is truncated", where=str(path), instead=_AGAIN)
    if found[:4] != _MAGIC or len(found) < 16:
        raise InputError("is not an SPZ file", where=str(path), instead=_AGAIN)
    return found


def _sizes(path: Path, version: int, count: int, degree: int) -> list[int]:
    """Return the sizes of positions, opacities, colors, scales, rotations and harmonics [bytes]."""
    if not 1 <= version <= 4:
        raise InputError(
            f"has SPZ version {version}; versions 1 to 4 are supported",
            where=str(path),
            instead="export it as version 3",
        )
    if degree >= len(_COEFFICIENTS):
        raise InputError(
            f"has harmonics of degree {degree}; degrees up to 4 are supported", where=str(path), instead=_AGAIN
        )
    if not 0 < count <= MOST_SPLATS:
        what = f"has {count} splats; the supported number is 1 to {MOST_SPLATS}"
        raise InputError(what, where=str(path), instead="prune it, for example with splat-transform --decimate")
    place, turn = 6 if version == 1 else 9, 4 if version >= 3 else 3
    return [count * size for size in (place, 1, 3, 3, turn, 3 * _COEFFICIENTS[degree])]


def _unpack_streams(path: Path, content: bytes, table: int, count: int, sizes: list[int]) -> list[bytes]:
    """Return the streams of a file of version 4, whose table has the packed and unpacked size of each."""
    import pyarrow

    wanted = [size for size in sizes if size]
    start = table + 16 * count
    if count != len(wanted) or start > len(content):
        raise InputError(f"has {count} streams; expected {len(wanted)}", where=str(path), instead=_AGAIN)
    found = []
    for number, size in enumerate(wanted):
        # The number of splats determines the unpacked size, so a stream cannot allocate more.
        packed, real = struct.unpack_from("<QQ", content, table + 16 * number)
        if real != size or packed > len(content) - start:
            raise InputError(f"stream {number} is truncated", where=str(path), instead=_AGAIN)
        try:
            block = pyarrow.decompress(content[start : start + packed], size, codec="zstd", asbytes=True)
        except (OSError, pyarrow.ArrowInvalid):
            raise InputError(f"stream {number} is damaged", where=str(path), instead=_AGAIN) from None
        found.append(block)
        start += packed
    return found + [b""] * (len(sizes) - len(found))


def _decode(version: int, degree: int, fraction: int, is_antialiased: bool, blocks: list[bytes]) -> SplatCloud:
    positions, alphas, colors, scales, rotations, rest = (np.frombuffer(block, np.uint8) for block in blocks)
    harmonics = None
    if count := _COEFFICIENTS[degree]:
        values = (rest.astype(np.float32) - 128.0) / 128.0
        kept = min(count, _COEFFICIENTS[3])  # harmonics of degree 4 have no visible effect
        harmonics = values.reshape(-1, count, 3)[:, :kept].swapaxes(1, 2).astype(np.float16)
    color = (colors.reshape(-1, 3).astype(np.float32) / 255.0 - 0.5) / _COLOR_SCALE
    return SplatCloud(
        positions=_places(version, fraction, positions),
        scales=np.exp(scales.reshape(-1, 3).astype(np.float32) / 16.0 - 10.0),
        wxyz=_smallest_three(rotations) if version >= 3 else _first_three(rotations),
        opacities=alphas.astype(np.float32) / 255.0,
        colors=0.5 + np.float32(FIRST_HARMONIC) * color,
        harmonics=harmonics,
        is_antialiased=is_antialiased,
    )


def _places(version: int, fraction: int, packed: NDArray[Any]) -> Float32Array:
    """Decode positions: half-precision numbers in version 1, 24-bit fixed-point numbers later."""
    if version == 1:
        return packed.view("<f2").reshape(-1, 3).astype(np.float32)
    parts = packed.reshape(-1, 3).astype(np.int32)
    value = parts[:, 0] | parts[:, 1] << 8 | parts[:, 2] << 16
    # NumPy has no type for 24 bits, so the sign of these numbers is extended here.
    value = np.where(value >= 1 << 23, value - (1 << 24), value)
    return (value / float(1 << fraction)).reshape(-1, 3).astype(np.float32)


def _first_three(packed: NDArray[Any]) -> Float32Array:
    """Decode quaternions stored as x, y and z; w is not negative."""
    xyz = packed.reshape(-1, 3).astype(np.float32) / 127.5 - 1.0
    w = np.sqrt(np.maximum(1.0 - np.sum(xyz**2, axis=1), 0.0))
    return unit_quaternions(np.column_stack([w, xyz]))


def _smallest_three(packed: NDArray[Any]) -> Float32Array:
    """Decode quaternions stored without their largest component.

    A word has the index of that component (in xyzw) in the top two bits, then 9 bits and a sign for each other one;
    the last component is in the lowest bits.
    """
    word = packed.view("<u4").copy()
    place, rows = (word >> 30).astype(int), np.arange(len(word))
    xyzw = np.zeros((len(word), 4), dtype=np.float32)
    for part in (3, 2, 1, 0):
        here = place != part
        value = (word & 511).astype(np.float32) * np.float32(np.sqrt(0.5) / 511.0)
        xyzw[here, part] = np.where((word >> 9) & 1, -value, value)[here]
        word = np.where(here, word >> np.uint32(10), word)
    xyzw[rows, place] = np.sqrt(np.maximum(1.0 - np.sum(xyzw**2, axis=1), 0.0))
    return unit_quaternions(np.roll(xyzw, 1, axis=1))
