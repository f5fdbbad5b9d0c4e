"""Opening of MP4 files, after a check of their boxes and of the samples that they declare.

FFmpeg builds an index of all declared samples when it opens a file, 36 bytes or more for each. A table may declare
millions of samples in 40 bytes, so a file of a few kB could take any amount of memory.
"""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from nimbus.datagen.files.bounded import check_regular
from nimbus.datagen.store.episode_file.sample_tables import DeclaredSamples
from nimbus.datagen.store.episode_file.video_boxes import ACCEPTED, SKIPPED, check_name, read_box

SAFE = {"ignore_chapters": "1"}
"""Options for every file: FFmpeg would compare each chapter with all others."""
QUICK = {**SAFE, "analyzeduration": "0", "probesize": "2048"}
"""Options that also skip probing, which would decode frames of a fragmented file: the header contains everything."""
_LOCAL = {"protocol_whitelist": "file"}
_MOST_BOXES = 1_000_000
"""Largest accepted number of boxes at the top level; a fragment has two."""
_MOST_BYTES = 1 << 28
"""Largest accepted box other than the images [bytes]."""
_MOST_IN_ALL = 1 << 30
"""Bytes of all boxes other than the images; each of 100,000 fragments has a few hundred."""
_ONCE = ("ftyp", "moov", "sidx")
"""Boxes of which a file has one. FFmpeg sorts the rows of several indices into one list, in quadratic time."""


def open_mp4(file: Path | IO[bytes] | io.RawIOBase, *, quick: bool = True) -> Any:
    """Open an MP4 file of any origin for reading.

    The format is fixed, because a guessed one could be a playlist, which may name other files.

    Args:
        file: Path, or open file with ``seek``.
        quick: Skip probing.

    Raises:
        ValueError: The file has boxes that no video needs, or declares more samples than it can hold.
        InputError: The path is not a regular file.
        OSError: The file cannot be read; FFmpeg's errors for other formats are among these.
    """
    from nimbus.datagen.files.av_library import av

    if isinstance(file, Path):
        check_regular(file)
        with file.open("rb") as opened:
            check_samples(opened)
    else:
        check_samples(file)
        file.seek(0)
    # FFmpeg takes a path such as "http:/x.mp4" for an address, also if the file exists.
    source: Any = f"file:{file.absolute()}" if isinstance(file, Path) else file
    return av.open(source, format="mp4", options=(QUICK if quick else SAFE) | _LOCAL)


def check_samples(file: IO[bytes] | io.RawIOBase) -> None:
    """Check the boxes of an MP4 file and the samples that they declare, without reading its images.

    Raises:
        ValueError: A box is not accepted, or the samples are more than the file can hold.
    """
    try:
        _check_file(file, file.seek(0, os.SEEK_END))
    except struct.error:
        raise ValueError("a table that ends early") from None


def _check_file(file: IO[bytes] | io.RawIOBase, file_size: int) -> None:
    starts: set[int] = set()
    names: set[str] = set()
    images: list[tuple[int, int]] = []
    fragments: list[int] = []
    samples, in_all = DeclaredSamples(file_size), 0
    for place, name, begin, end in _boxes(file, file_size):
        if not names and name not in ACCEPTED:
            raise ValueError("not an MP4 file")
        check_name(name)
        if name in names and name in _ONCE:
            raise ValueError(f"a second box {name!a} in its file")
        names.add(name)
        starts.add(place)
        if len(starts) > _MOST_BOXES:
            raise ValueError(f"more than {_MOST_BOXES} boxes")
        if name == "mdat":
            images.append((begin, end))
        if name in SKIPPED:
            continue
        if begin != place + 8:
            raise ValueError(f"a box {name!a} whose size has 64 bits")
        if end - begin > _MOST_BYTES:
            raise ValueError(f"a box {name!a} of {end - begin} bytes; the limit is {_MOST_BYTES}")
        if (in_all := in_all + end - begin) > _MOST_IN_ALL:
            raise ValueError(f"boxes of more than {_MOST_IN_ALL} bytes")
        box = read_box(name, memoryview(_read(file, begin, end - begin)))
        if name == "moov":
            samples.add_movie(box)
        elif name == "moof":
            samples.add_fragment(box, place)
        elif name == "sidx":
            fragments += _indexed(box.body, end)
    if "moov" not in names:
        raise ValueError("not an MP4 file")
    samples.check(images)
    if any(place < file_size and place not in starts for place in fragments):
        raise ValueError("its index names a fragment that does not exist")


def _boxes(file: IO[bytes] | io.RawIOBase, file_size: int) -> Iterator[tuple[int, str, int, int]]:
    """Yield the start, name, start of the contents and end of each box at the top level; the last may be truncated."""
    place = 0
    while place + 8 <= file_size:
        header = _read(file, place, 16)
        size, name = struct.unpack(">I4s", header[:8])
        least = 8
        if size == 1 and len(header) == 16:
            size, least = int.from_bytes(header[8:], "big"), 16
        elif size == 0:
            size = file_size - place
        if size < least:
            return
        yield place, name.decode("latin-1"), place + least, min(place + size, file_size)
        place += size


def _read(file: IO[bytes] | io.RawIOBase, place: int, size: int) -> bytes:
    """Read bytes at a place; fewer at the end of the file."""
    file.seek(place)
    parts: list[bytes] = []
    while size > 0 and (part := file.read(size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _indexed(body: memoryview, end: int) -> Iterator[int]:
    """Yield the places of the fragments that a `sidx` names.

    Args:
        body: Contents of the index.
        end: Place of its end in the file, from which it counts [bytes].
    """
    # Behind version, track, time scale and first time are the distance of the first fragment and the number of rows.
    is_wide = body[:1] != b"\0"
    distance, count = struct.unpack_from(">QxxH" if is_wide else ">IxxH", body, 20 if is_wide else 16)
    first = 32 if is_wide else 24
    if first + 12 * count != len(body):
        raise ValueError(f"it declares an index of {count} fragments in {len(body)} bytes")
    place = end + distance
    for row in range(first, len(body), 12):
        yield place
        place += struct.unpack_from(">I", body, row)[0] & 0x7FFF_FFFF
