"""Structure of a msgpack frame: entries and levels are counted in its bytes, before anything is decoded.

Most versions of the msgpack library reserve memory for a list or map as soon as they have read its declared length: a
frame of 5 kB with nested lists of a million entries each took 8 GB.
"""

from __future__ import annotations

import re

_ONE_BYTE = re.compile(rb"[\x00-\x7f\xc0\xc2\xc3\xe0-\xff]+")
"""Run of values of one byte: small whole numbers, None, False and True."""
_FIXED = {0xCC: 1, 0xD0: 1, 0xCD: 2, 0xD1: 2, 0xCA: 4, 0xCE: 4, 0xD2: 4, 0xCB: 8, 0xCF: 8, 0xD3: 8}
"""Number of bytes of a number after its first byte, by the first byte."""
_SIZED = {0xC4: 1, 0xD9: 1, 0xC5: 2, 0xDA: 2, 0xC6: 4, 0xDB: 4}
"""Number of bytes that state the length of a text or of bytes, by the first byte."""
_LISTS, _MAPS = {0xDC: 2, 0xDD: 4}, {0xDE: 2, 0xDF: 4}
"""Number of bytes that state the length of a list or map, by the first byte."""


class FrameError(ValueError):
    """Raised for a frame that is damaged, too large, or has unsupported content."""


def check_structure(frame: bytes, *, most_entries: int, most_levels: int) -> None:
    """Refuse a frame before it is decoded.

    Args:
        frame: One msgpack value.
        most_entries: Largest number of lists and maps and their entries, in total.
        most_levels: Largest nesting depth of lists and maps.

    Raises:
        FrameError: The frame has more entries or levels, is cut off, or has an extension type.
    """
    at, total, left = 0, 0, [1]
    while left:
        if not left[-1]:
            left.pop()
            continue
        if run := _ONE_BYTE.match(frame, at, at + left[-1]):
            left[-1] -= run.end() - at
            at = run.end()
            continue
        if at >= len(frame):
            raise FrameError("invalid msgpack: it is cut off")
        left[-1] -= 1
        first = frame[at]
        at += 1
        if (count := _entry_count(frame, first, at)) is None:
            at += _value_bytes(frame, first, at)
            continue
        at += _LISTS.get(first, 0) or _MAPS.get(first, 0)
        is_map = 0x80 <= first <= 0x8F or first in _MAPS
        if (total := total + 1 + count) > most_entries:
            raise FrameError(f"lists and maps with more than {most_entries} entries in total")
        left.append(2 * count if is_map else count)
        if len(left) - 1 > most_levels:
            raise FrameError(f"lists and maps nested more than {most_levels} levels deep")
    if at > len(frame):
        raise FrameError("invalid msgpack: it is cut off")


def _entry_count(frame: bytes, first: int, at: int) -> int | None:
    """Return the number of entries of a list or map; None for other values."""
    if 0x80 <= first <= 0x9F:
        return first & 0x0F
    if width := _LISTS.get(first, 0) or _MAPS.get(first, 0):
        return int.from_bytes(frame[at : at + width], "big")
    return None


def _value_bytes(frame: bytes, first: int, at: int) -> int:
    """Return the number of bytes after the first one of a number, a text or bytes."""
    if 0xA0 <= first <= 0xBF:
        return first & 0x1F
    if (width := _SIZED.get(first)) is not None:
        return width + int.from_bytes(frame[at : at + width], "big")
    if (width := _FIXED.get(first)) is not None:
        return width
    raise FrameError("invalid msgpack: an extension type, or an unknown one")
