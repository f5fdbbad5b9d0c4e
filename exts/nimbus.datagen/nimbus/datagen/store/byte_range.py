"""Byte ranges of files, used to read episodes that lie inside shards."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class RangeFile(io.RawIOBase):
    """Open file of a :class:`ByteRange`."""

    def fetch(self, spans: Iterable[tuple[int, int]]) -> None:
        """Fetch byte spans ``[start, stop)`` ahead if the file is in a store; otherwise do nothing."""


@dataclass(frozen=True, kw_only=True)
class ByteRange:
    """Bytes ``[offset, offset + byte_count)`` of a file."""

    path: Path
    offset: int
    byte_count: int
    name: str = ""
    """Name in errors."""

    def __str__(self) -> str:
        return f"{self.path}: {self.name or f'bytes {self.offset} to {self.offset + self.byte_count}'}"

    @property
    def is_here(self) -> bool:
        """True when the file is on this machine rather than in a store."""
        return True

    def open(self) -> RangeFile:
        """Open for reading; raises ``OSError`` when there is no such file."""
        return ByteRangeFile(self)

    def fetch_ends(self) -> None:
        """Fetch the beginning and the end, which opening reads, if the file is in a store; otherwise do nothing."""


class ByteRangeFile(RangeFile):
    """Open file over the bytes of a :class:`ByteRange`."""

    def __init__(self, span: ByteRange) -> None:
        self._span = span
        self._position = 0
        self._descriptor = os.open(span.path, os.O_RDONLY | os.O_CLOEXEC)

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the position."""
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move to a position; return it."""
        origin = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._span.byte_count}[whence]
        self._position = max(0, origin + offset)
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Read at the position, up to the end of the range."""
        view = memoryview(buffer).cast("B")
        left = max(0, self._span.byte_count - self._position)
        # A positioned read does not move the descriptor's own offset, which forked readers share.
        count = os.preadv(self._descriptor, [view[:left]], self._span.offset + self._position) if left else 0
        self._position += count
        return count

    def close(self) -> None:
        """Close the file."""
        if not self.closed:
            os.close(self._descriptor)
        super().close()
