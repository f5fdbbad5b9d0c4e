"""Reads pictures in Radiance's format (``.hdr``): light that shines brighter than white, as sky pictures have it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.errors import InputError

_MAGIC = b"#?"
_FORMAT = b"FORMAT=32-bit_rle_rgbe"
_MOST_PIXELS = 1 << 27


def read_radiance(path: Path) -> NDArray[np.float32]:
    """(H, W, 3) linear light, from the top row down.

    Raises:
        InputError: It is not there, no such picture, or cut off.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError((error.strerror or str(error)).lower(), where=str(path)) from None
    try:
        return _decoded(content)
    except ValueError as error:
        instead = "save it in Radiance's format (.hdr), with the rows from the top down"
        raise InputError(f"no picture of the sky: {error}", where=str(path), instead=instead) from None


def _decoded(content: bytes) -> NDArray[np.float32]:
    head, empty_line, rest = content.partition(b"\n\n")
    if not head.startswith(_MAGIC) or _FORMAT not in head:
        raise ValueError("it does not begin as one in Radiance's format")
    if not empty_line:
        raise ValueError("no empty line ends its head; lines end with LF alone, not with CR LF")
    size, _, data = rest.partition(b"\n")
    height, width = _size(size)
    values = np.frombuffer(data, dtype=np.uint8)
    rgbe = _rows(values, height, width) if _is_packed(values, width) else _plain(values, height, width)
    scale = np.where(rgbe[..., 3:] > 0, np.ldexp(1.0, rgbe[..., 3:].astype(int) - 136), 0.0)
    return (rgbe[..., :3] * scale).astype(np.float32)


def _size(line: bytes) -> tuple[int, int]:
    """Height and width from a line such as ``-Y 512 +X 1024``."""
    said = line[:40].decode(errors="replace")
    words = line[:40].split()
    if len(words) != 4 or not (words[1].isdigit() and words[3].isdigit()):
        raise ValueError(f"'{said}' stands where its size should, such as -Y 512 +X 1024")
    if (words[0], words[2]) != (b"-Y", b"+X"):
        raise ValueError(f"its rows are in another order: {said}")
    height, width = int(words[1]), int(words[3])
    if not 0 < height * width <= _MOST_PIXELS:
        raise ValueError(f"{width} x {height} pixels")
    if height < 2:
        raise ValueError("one row of pixels shows either sky or ground, not both")
    return height, width


def _is_packed(values: NDArray[np.uint8], width: int) -> bool:
    return 8 <= width < 1 << 15 and len(values) > 3 and values[0] == 2 and values[1] == 2 and values[2] < 128


def _plain(values: NDArray[np.uint8], height: int, width: int) -> NDArray[np.uint8]:
    if len(values) < height * width * 4:
        raise ValueError("it is cut off")
    return values[: height * width * 4].reshape(height, width, 4)


def _rows(values: NDArray[np.uint8], height: int, width: int) -> NDArray[np.uint8]:
    """Rows whose channels are packed one after the other: a count above 128 repeats the next value."""
    found, at = np.empty((height, 4, width), dtype=np.uint8), 0
    for row in found:
        if at + 4 > len(values):
            raise ValueError("it is cut off")
        if int(values[at + 2]) << 8 | int(values[at + 3]) != width:
            raise ValueError("its rows have different lengths")
        at += 4
        for channel in row:
            column = 0
            while column < width:
                if at >= len(values):
                    raise ValueError("it is cut off")
                count, at = int(values[at]), at + 1
                repeats = count > 128
                count = count - 128 if repeats else count
                if not count or column + count > width:
                    raise ValueError("a row does not fit")
                taken = 1 if repeats else count
                if at + taken > len(values):
                    raise ValueError("it is cut off")
                channel[column : column + count] = values[at : at + taken]
                column, at = column + count, at + taken
    return np.moveaxis(found, 1, 2)


def hemispheres(picture: NDArray[np.float32]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean light (3,) from above and from below of a picture of the whole sky, latitude over longitude.

    Args:
        picture: (H, W, 3) linear light; its top row is straight up.
    """
    latitude = np.pi * ((np.arange(len(picture)) + 0.5) / len(picture) - 0.5)
    weight = np.cos(latitude)
    rows = picture.mean(axis=1, dtype=np.float64)
    halves = latitude < 0, latitude > 0
    above, below = (np.average(rows[half], axis=0, weights=weight[half]) for half in halves)
    return above, below
