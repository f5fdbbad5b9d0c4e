"""Samples that the tables of an MP4 file declare: their number, and their bytes in the file.

A table of some bytes may declare millions of samples, and all of them may name one image. FFmpeg indexes them when it
opens the file, and a reader would decode the image as often. Structures: ISO/IEC 14496-12.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import unpack_from
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.store.episode_file.video_boxes import Box

MOST_SAMPLES = 10_000_000
"""Largest accepted number of samples in a file: 92 hours at 30 Hz, about 400 MB of index."""
_BASE, _DESCRIPTION, _DURATION, _SIZE = 1, 2, 8, 16
"""Bits for the fields of a `tfhd` before and with the size of samples."""
_OFFSET, _FIRST_FLAGS, _DURATIONS, _SIZES, _ROW = 1, 4, 0x100, 0x200, 0xF00
"""Bits for the fields of a `trun`, and for all fields of its rows."""


class DeclaredSamples:
    """Samples of the one track of a file.

    Args:
        file_size: Size of the file [bytes].
    """

    def __init__(self, file_size: int) -> None:
        self._file_size = file_size
        self._count = self._edits = self._default_size = 0
        self._starts: list[NDArray[np.int64]] = []
        self._sizes: list[NDArray[np.int64]] = []

    def add_movie(self, moov: Box) -> None:
        """Add the tables of a `moov`.

        Raises:
            ValueError: They declare more than they contain, or more samples than accepted.
            struct.error: A table is too short.
        """
        if trex := moov.part("mvex", "trex"):
            self._default_size = unpack_from(">I", trex.body, 16)[0]
        if edits := moov.part("trak", "edts", "elst"):
            is_wide = unpack_from(">B", edits.body)[0] == 1
            self._edits = len(_rows(edits.body, "edits", 5 if is_wide else 3))
        stbl = moov.part("trak", "mdia", "minf", "stbl")
        if stbl is None:
            return
        for name, width in (("stts", 2), ("ctts", 2), ("stss", 1)):
            _rows(stbl.content(name), "times or keyframes", width)
        sizes = self._table_sizes(stbl)
        self._count += len(sizes)
        self._check_count()
        starts = _rows(stbl.content("stco"), "chunks", 1)[:, 0].astype(np.int64)
        far = _rows(stbl.content("co64"), "chunks", 2).astype(np.uint64)
        places = np.minimum(far[:, 0] << np.uint64(32) | far[:, 1], np.uint64(self._file_size)).astype(np.int64)
        starts = np.concatenate([starts, places])
        ends = np.minimum(np.cumsum(_chunk_counts(stbl, len(starts))), len(sizes))
        totals = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        self._starts.append(starts)
        self._sizes.append(np.diff(totals[ends], prepend=0))

    def add_fragment(self, moof: Box, place: int) -> None:
        """Add the tables of a `moof` that starts at a place in the file [bytes].

        Raises:
            ValueError: They declare more than they contain, or more samples than accepted.
            struct.error: A table is too short.
        """
        traf = moof.part("traf")
        if traf is None or not traf.parts:
            return
        header = traf.parts[0].body
        flags, at = unpack_from(">I", header)[0], 8
        base = place
        if flags & _BASE:
            base, at = unpack_from(">Q", header, at)[0], at + 8
        at += 4 * bool(flags & _DESCRIPTION) + 4 * bool(flags & _DURATION)
        default = unpack_from(">I", header, at)[0] if flags & _SIZE else self._default_size
        runs = [self._run(part.body, base, default) for part in traf.parts if part.name == "trun"]
        if runs:
            self._starts.append(np.array([start for start, _ in runs], np.int64))
            self._sizes.append(np.array([size for _, size in runs], np.int64))

    def check(self, images: Sequence[tuple[int, int]]) -> None:
        """Check the totals.

        Args:
            images: Start and end of each `mdat`, in order [bytes].

        Raises:
            ValueError: Samples are repeated, or lie outside of each `mdat`.
        """
        self._check_count()
        if not self._starts:
            return
        starts, sizes = np.concatenate(self._starts), np.concatenate(self._sizes)
        # Samples behind the end of a truncated file cannot be read.
        is_there = (sizes > 0) & (starts < self._file_size)
        starts, sizes = starts[is_there], sizes[is_there]
        total = int(np.minimum(sizes, self._file_size - starts).sum())
        if total > self._file_size:
            raise ValueError(f"it declares samples of {total} bytes, but has {self._file_size} bytes")
        begins, ends = np.array([(0, 0), *images], np.int64).T
        if (starts >= ends[np.searchsorted(begins, starts, side="right") - 1]).any():
            raise ValueError("it declares samples outside of its images")

    def _table_sizes(self, stbl: Box) -> NDArray[np.uint32]:
        """Return the (N,) sizes of all samples [bytes]."""
        if body := stbl.content("stz2"):
            bits, count = unpack_from(">II", body, 4)
            if bits not in (4, 8, 16):
                raise ValueError(f"sizes of {bits} bits")
            self._check_fit(count, (len(body) - 12) * 8 // bits)
            packed = np.frombuffer(body, ">u2" if bits == 16 else "u1", offset=12)
            if bits == 4:
                packed = np.stack([packed >> 4, packed & 15], axis=1).ravel()
            return packed[:count].astype(np.uint32)
        if not (body := stbl.content("stsz")):
            return np.zeros(0, np.uint32)
        each, count = unpack_from(">II", body, 4)
        self._check_fit(count, self._file_size // each if each else (len(body) - 12) // 4)
        return np.full(count, each, np.uint32) if each else np.frombuffer(body, ">u4", count, 12).astype(np.uint32)

    def _run(self, body: memoryview, base: int, default: int) -> tuple[int, int]:
        """Count the samples of a `trun`; return their start in the file and their size [bytes]."""
        flags, count = unpack_from(">II", body)
        start, at = base, 8
        if flags & _OFFSET:
            start, at = base + unpack_from(">i", body, at)[0], at + 4
        at += 4 * bool(flags & _FIRST_FLAGS)
        width = (flags & _ROW).bit_count()
        self._check_fit(count, (len(body) - at) // (4 * width) if width else self._file_size)
        self._count += count
        size = count * default
        if flags & _SIZES:
            rows = np.frombuffer(body, ">u4", count * width, at).reshape(count, width)
            size = int(rows[:, bool(flags & _DURATIONS) * 1].sum(dtype=np.int64))
        return max(0, min(start, self._file_size)), size

    def _check_fit(self, count: int, most: int) -> None:
        if count > most:
            raise ValueError(f"it declares {count} samples, but has {self._file_size} bytes")
        if count > MOST_SAMPLES:
            raise ValueError(f"it declares {count} samples; the limit is {MOST_SAMPLES}")

    def _check_count(self) -> None:
        # Each edit may repeat all samples.
        if (declared := self._count * max(self._edits, 1)) > MOST_SAMPLES:
            raise ValueError(f"it declares {declared} samples; the limit is {MOST_SAMPLES}")


def _rows(body: memoryview, what: str, width: int) -> NDArray[Any]:
    """Return the (N, W) rows of a table, whose number stands behind four bytes; none if there is no table.

    Raises:
        ValueError: There are fewer rows than the table declares.
    """
    if not body:
        return np.zeros((0, width), np.uint32)
    count = unpack_from(">I", body, 4)[0]
    if count * width * 4 > len(body) - 8:
        raise ValueError(f"it declares {count} {what} in {len(body)} bytes")
    return np.frombuffer(body, ">u4", count * width, 8).reshape(count, width)


def _chunk_counts(stbl: Box, chunk_count: int) -> NDArray[np.int64]:
    """Return the (N,) numbers of samples in all chunks.

    Raises:
        ValueError: The table is not in order.
    """
    rows = _rows(stbl.content("stsc"), "groups of chunks", 3).astype(np.int64)
    if not chunk_count:
        return np.zeros(0, np.int64)
    firsts, counts = rows[:, 0], rows[:, 1]
    if not len(rows) or firsts[0] != 1 or (np.diff(firsts) <= 0).any() or (counts < 1).any():
        raise ValueError("the numbers of samples in its chunks are damaged")
    return counts[np.searchsorted(firsts, np.arange(1, chunk_count + 1), side="right") - 1]
