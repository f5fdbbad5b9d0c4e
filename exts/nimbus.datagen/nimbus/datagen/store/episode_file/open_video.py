"""Opening of MP4 files, after a check that they declare no more samples than they can hold.

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

SAFE = {"ignore_chapters": "1"}
"""Options for every file: FFmpeg would compare each chapter with all others."""
QUICK = {**SAFE, "analyzeduration": "0", "probesize": "2048"}
"""Options that also skip probing, which would decode frames of a fragmented file: the header contains everything."""
MOST_SAMPLES = 10_000_000
"""Largest accepted number of samples in a file: 92 hours at 30 Hz, about 400 MB of index."""
_MOST_TRACKS = 16
_MOST_BOXES = 1_000_000
"""Largest accepted number of boxes at the top level; a fragment has two."""
_MOST_BYTES = 1 << 28
"""Largest accepted box other than the images [bytes]."""
_AUDIO_PIECE = 512
"""FFmpeg joins at least that many values of uncompressed sound into one entry of its index."""
_ITEMS = (b"iinf", b"iloc", b"iref", b"ipma")
"""Tables of the items of HEIF pictures. FFmpeg reserves memory for as many items as they declare."""
_PARTS = {
    b"": b"ftyp styp moov moof mdat free skip wide mfra sidx udta uuid pdin emsg prft",
    b"moov": b"mvhd trak mvex udta meta iods free skip uuid",
    b"trak": b"tkhd edts mdia udta meta free skip uuid",
    b"mdia": b"mdhd hdlr minf elng free skip",
    b"minf": b"vmhd smhd nmhd gmhd hdlr dinf stbl free skip",
    b"stbl": b"stsd stts ctts stss stsc stsz stz2 stco co64 sdtp sgpd sbgp cslg stps free skip",
    b"edts": b"elst",
    b"mvex": b"mehd trex",
    b"moof": b"mfhd traf free skip",
    b"traf": b"tfhd tfdt trun sdtp sgpd sbgp free skip",
}
"""Accepted boxes inside each box with parts; at the top level of the file for an empty name."""
_SKIPPED = {b"mdat", b"free", b"skip", b"wide", b"mfra"}
"""Boxes that FFmpeg does not read when it opens a file that has a `moov`."""


def open_mp4(file: Path | IO[bytes] | io.RawIOBase, *, quick: bool = True) -> Any:
    """Open an MP4 file of any origin for reading.

    The format is fixed, because a guessed one could be a playlist, which may name other files.

    Args:
        file: Path, or open file with ``seek``.
        quick: Skip probing.

    Raises:
        ValueError: The file declares more samples than it can hold, or more than any video has.
        InputError: The path is not a regular file.
        OSError: The file cannot be read; FFmpeg's errors for other formats are among these.
    """
    import av

    if isinstance(file, Path):
        check_regular(file)
        with file.open("rb") as opened:
            check_samples(opened)
    else:
        check_samples(file)
        file.seek(0)
    source: Any = str(file) if isinstance(file, Path) else file
    return av.open(source, format="mp4", options=QUICK if quick else SAFE)


def check_samples(file: IO[bytes] | io.RawIOBase) -> None:
    """Check the numbers of samples that an MP4 file declares, without reading its images.

    Tables are found by their names anywhere outside of the images, because FFmpeg accepts them in unusual places.

    Raises:
        ValueError: The numbers are larger than the file allows, or tables are hidden among the images.
    """
    file_size = file.seek(0, os.SEEK_END)
    starts: set[int] = set()
    tables = _Tables(file_size)
    for place, name, size in _boxes(file, file_size):
        starts.add(place)
        if len(starts) > _MOST_BOXES:
            raise ValueError(f"more than {_MOST_BOXES} boxes")
        if name not in _SKIPPED:
            if size > _MOST_BYTES:
                raise ValueError(f"tables of {size} bytes")
            tables.add(_read(file, place, size), place)
    tables.check(starts)


class _Tables:
    """Numbers that the tables of a file declare."""

    def __init__(self, file_size: int) -> None:
        self._file_size = file_size
        self._has_moov = False
        self._tracks = self._samples = self._chunks = self._per_chunk = self._edits = 0
        self._fragments: list[int] = []
        """Places of fragments in the file, as its indices state them [bytes]."""

    def add(self, data: bytes, place: int) -> None:
        """Add a box, header included, that starts at a place in the file."""
        self._has_moov |= data[4:8] == b"moov"
        _check_parts(data, b"")
        if b"cmov" in data or b"mdat" in data:
            # Compressed tables cannot be counted. Images inside of a table would move the borders of later boxes.
            raise ValueError("tables that are compressed, or mixed with images")
        if next(_found(data, *_ITEMS), None) is not None:
            raise ValueError("items of a picture file, which a video does not have")
        for at in _found(data, b"keys"):
            self._count_keys(_numbers(data, at + 8, 1)[0], (len(data) - at) // 8)
        self._tracks += data.count(b"trak")
        for at in _found(data, b"stsz"):
            each, count = _numbers(data, at + 8, 2)
            self._count(count, self._file_size // each if each else (len(data) - at) // 4)
        for at in _found(data, b"stz2"):
            bits, count = _numbers(data, at + 8, 2)
            self._count(count, (len(data) - at) * 8 // max(bits & 0xFF, 1))
        for at in _found(data, b"trun"):
            self._count(_numbers(data, at + 8, 1)[0], self._file_size)
        for at in _found(data, b"elst"):
            self._edits = max(self._edits, _numbers(data, at + 8, 1)[0])
        for at in _found(data, b"stco", b"co64"):
            self._chunks += min(_numbers(data, at + 8, 1)[0], (len(data) - at) // 4)
        for at in _found(data, b"stsc"):
            rows = min(_numbers(data, at + 8, 1)[0], (len(data) - at - 12) // 12)
            counts = struct.unpack_from(f">{3 * max(rows, 0)}I", data, at + 12)[1::3]
            self._per_chunk = max(self._per_chunk, *counts, 0)
        for at in _found(data, b"sidx"):
            self._fragments += _indexed(data, at, place)

    def check(self, starts: set[int]) -> None:
        """Check the totals.

        Args:
            starts: Places of the boxes at the top level [bytes].

        Raises:
            ValueError: A total is too large.
        """
        if not self._has_moov:
            raise ValueError("not an MP4 file")
        if self._tracks > _MOST_TRACKS:
            raise ValueError(f"{self._tracks} tracks; the limit is {_MOST_TRACKS}")
        # Each edit may repeat all samples; sound is indexed by chunks.
        declared = self._samples * max(self._edits, 1) + self._chunks * -(-self._per_chunk // _AUDIO_PIECE)
        if declared > MOST_SAMPLES:
            raise ValueError(f"it declares {declared} samples; the limit is {MOST_SAMPLES}")
        if any(place < self._file_size and place not in starts for place in self._fragments):
            raise ValueError("its index names a fragment that does not exist")

    def _count_keys(self, count: int, most: int) -> None:
        """Refuse names of metadata that the box cannot hold; FFmpeg reserves memory for all of them."""
        if count > most:
            raise ValueError(f"it declares {count} names of metadata, but has {self._file_size} bytes")

    def _count(self, count: int, most: int) -> None:
        """Count the samples of one table."""
        if count > most:
            raise ValueError(f"it declares {count} samples, but has {self._file_size} bytes")
        self._samples += count


def _boxes(file: IO[bytes] | io.RawIOBase, file_size: int) -> Iterator[tuple[int, bytes, int]]:
    """Yield place, name and size of each box at the top level; the last one may be truncated."""
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
        yield place, name, min(size, file_size - place)
        place += size


def _check_parts(data: bytes, above: bytes) -> None:
    """Refuse boxes that no video needs; FFmpeg has a reader for each of a hundred names."""
    file = io.BytesIO(data)
    for place, name, size in _boxes(file, len(data)):
        if name not in _PARTS[above].split():
            raise ValueError(f"a box {name.decode('latin-1')!a} in its {above.decode() or 'file'}")
        if name in _PARTS:
            _check_parts(_read(file, place, size)[16 if data[place : place + 4] == b"\0\0\0\1" else 8 :], name)


def _read(file: IO[bytes] | io.RawIOBase, place: int, size: int) -> bytes:
    """Read bytes at a place; fewer at the end of the file."""
    file.seek(place)
    parts: list[bytes] = []
    while size > 0 and (part := file.read(size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _found(data: bytes, *names: bytes) -> Iterator[int]:
    """Yield the place of each box name in the bytes of a box."""
    for name in names:
        at = data.find(name)
        while at >= 0:
            yield at
            at = data.find(name, at + 1)


def _numbers(data: bytes, at: int, count: int) -> tuple[int, ...]:
    """Read numbers of 32 bits; FFmpeg reads zeros beyond the end."""
    return struct.unpack(f">{count}I", data[at : at + 4 * count].ljust(4 * count, b"\0"))


def _indexed(data: bytes, at: int, place: int) -> Iterator[int]:
    """Yield the places of fragments of a segment index, whose name is at ``at``; the end of the index counts as 0."""
    is_wide = data[at + 4 : at + 5] != b"\0"
    begin = at + 24 if is_wide else at + 20  # behind version, track, time scale and first time
    offset = int.from_bytes(data[begin : begin + (8 if is_wide else 4)], "big")
    begin += 8 if is_wide else 4
    count = int.from_bytes(data[begin + 2 : begin + 4], "big")
    rows = range(begin + 4, begin + 4 + 12 * count, 12)
    offset += place + rows.stop
    for row in rows:
        yield offset
        offset += _numbers(data, row, 1)[0] & 0x7FFF_FFFF
