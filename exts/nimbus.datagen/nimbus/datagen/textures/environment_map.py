"""Reader of environment maps in Radiance's format (``.hdr``), whose light may be brighter than white."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.errors import InputError
from nimbus.datagen.textures.image_bytes import read_image_bytes

_MAGIC, _FIRST = b"#?", b"#?RADIANCE"
_FORMAT = b"FORMAT=32-bit_rle_rgbe"
_MOST_PIXELS = 1 << 25
"""Largest number of pixels, 8192 x 4096; decoding takes 36 bytes for each."""
_MOST_BYTES = 1 << 30
"""Largest file [bytes]; most maps have 4 bytes a pixel or fewer."""


def check_map(path: Path, content: str) -> bytes:
    """Return the bytes of an environment map, which must be those with which an episode was made.

    Raises:
        InputError: The file is missing, or has another hash: a stored layout may name any file.
    """
    data = read_image_bytes(path, limit=_MOST_BYTES)
    if hash_map(data) != content:
        what = "the environment map has changed since the episode was generated"
        raise InputError(what, where=str(path), instead="restore it, or generate the episode again")
    return data


def hash_map(data: bytes) -> str:
    """Return the hash of an environment map's file, which layouts state beside its path."""
    return hashlib.sha256(data).hexdigest()[:16]


def read_radiance(path: Path, *, content: str | None = None) -> NDArray[np.float32]:
    """Read an environment map; return its linear light (H, W, 3), from the top row down.

    Args:
        path: The file.
        content: Hash that the file must have; None for any.

    Raises:
        InputError: The file is missing, in another format, truncated, or another one than ``content`` states.
    """
    try:
        return _decoded(read_image_bytes(path, limit=_MOST_BYTES) if content is None else check_map(path, content))
    except ValueError as error:
        instead = "save it in Radiance's format (.hdr), with the rows from the top down"
        raise InputError(f"not a readable environment map: {error}", where=str(path), instead=instead) from None


def _decoded(content: bytes) -> NDArray[np.float32]:
    head, empty_line, rest = content.partition(b"\n\n")
    if not head.startswith(_MAGIC) or _FORMAT not in head:
        raise ValueError("its first line is not that of a file in Radiance's format")
    if not empty_line:
        raise ValueError("its header does not end with an empty line; every line must end with LF, not with CR LF")
    size, _, data = rest.partition(b"\n")
    height, width = _size(size)
    # FFmpeg ends the header elsewhere, for example at a line that begins with NUL, and would read another size.
    head = b"%s\n%s\n\n-Y %d +X %d\n" % (_FIRST, _FORMAT, height, width)
    image, same = (_decode_frame(head + data + byte * (8 * width + 8)) for byte in (b"\xff", b"\xfe"))
    if not np.array_equal(image, same):  # FFmpeg fills a last row that is cut off with whatever follows
        raise ValueError("it is cut off")
    return image


def _decode_frame(content: bytes) -> NDArray[np.float32]:
    """Return the pixels (H, W, 3) that FFmpeg decodes."""
    from nimbus.datagen.files.av_library import av

    try:
        with av.open(io.BytesIO(content), mode="r", format="hdr_pipe") as container:
            return np.asarray(next(container.decode(video=0)).to_ndarray(), np.float32)
    except (OSError, ValueError, StopIteration):
        raise ValueError("it is cut off, or damaged") from None


def _size(line: bytes) -> tuple[int, int]:
    """Return the height and width [px] that a line such as ``-Y 512 +X 1024`` gives."""
    said = line[:40].decode(errors="replace")
    words = line[:40].split()
    if len(words) != 4 or not (words[1].isdigit() and words[3].isdigit()):
        raise ValueError(f"its size line is '{said}'; expected a line such as -Y 512 +X 1024")
    if (words[0], words[2]) != (b"-Y", b"+X"):
        raise ValueError(f"its rows are not in the order -Y +X, but in {said}")
    height, width = int(words[1]), int(words[3])
    if not 0 < height * width <= _MOST_PIXELS:
        raise ValueError(f"{width} x {height} pixels; the limit is 8192 x 4096")
    if height < 2:
        raise ValueError("one row of pixels shows either sky or ground, not both")
    return height, width


def hemispheres(picture: NDArray[np.float32]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the mean light (3,) of the upper and of the lower half of an environment map.

    Args:
        picture: Linear light (H, W, 3), latitude over longitude; the top row is straight up.
    """
    latitude = np.pi * ((np.arange(len(picture)) + 0.5) / len(picture) - 0.5)
    weight = np.cos(latitude)
    rows = picture.mean(axis=1, dtype=np.float64)
    halves = latitude < 0, latitude > 0
    above, below = (np.average(rows[half], axis=0, weights=weight[half]) for half in halves)
    return above, below
