"""Reads pictures in Radiance's format (``.hdr``): light that shines brighter than white, as sky pictures have it."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.errors import InputError

_MAGIC = b"#?"
_FORMAT = b"FORMAT=32-bit_rle_rgbe"
_MOST_PIXELS = 1 << 27


def read_radiance(path: Path) -> NDArray[np.float32]:
    """Read linear light (H, W, 3), from the top row down.

    Raises:
        InputError: The file is missing, of another format, or truncated.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(
            (error.strerror or str(error)).lower(), where=str(path), instead="give a file that can be read"
        ) from None
    try:
        return _decoded(content)
    except ValueError as error:
        instead = "save it in Radiance's format (.hdr), with the rows from the top down"
        raise InputError(f"not a readable environment map: {error}", where=str(path), instead=instead) from None


def _decoded(content: bytes) -> NDArray[np.float32]:
    head, empty_line, rest = content.partition(b"\n\n")
    if not head.startswith(_MAGIC) or _FORMAT not in head:
        raise ValueError("it does not begin as one in Radiance's format")
    if not empty_line:
        raise ValueError("no empty line ends its head; lines end with LF alone, not with CR LF")
    size, _, data = rest.partition(b"\n")
    _, width = _size(size)
    image, same = (
        _decode_frame(head + b"\n\n" + size + b"\n" + data + byte * (8 * width + 8)) for byte in (b"\xff", b"\xfe")
    )
    if not np.array_equal(image, same):  # FFmpeg fills a last row that is cut off with whatever follows
        raise ValueError("it is cut off")
    return image


def _decode_frame(content: bytes) -> NDArray[np.float32]:
    """Pixels (H, W, 3) as FFmpeg decodes them."""
    import av

    try:
        with av.open(io.BytesIO(content), mode="r", format="hdr_pipe") as container:
            return np.asarray(next(container.decode(video=0)).to_ndarray(), np.float32)
    except (OSError, ValueError, StopIteration):
        raise ValueError("it is cut off, or damaged") from None


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
