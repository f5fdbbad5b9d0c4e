"""Block-wise reading of a file in a store; each block is cached on this machine."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nimbus.datagen.store.byte_range import ByteRange, RangeFile
from nimbus.datagen.store.remote.blocks import BLOCK, ObjectBlocks
from nimbus.datagen.store.remote.cache_root import stands_for
from nimbus.datagen.store.remote.objects import LARGEST_OBJECT, check_size
from nimbus.datagen.store.remote.working_copy import is_remote


@dataclass(frozen=True, kw_only=True)
class StoredRange(ByteRange):
    """A :class:`ByteRange` of a file in a store, read in blocks."""

    @property
    def is_here(self) -> bool:
        """Return False."""
        return False

    def open(self) -> BlockFile:
        """Open for reading; nothing is read yet."""
        return BlockFile(self.path, offset=self.offset, byte_count=self.byte_count)

    def fetch_ends(self) -> None:
        """Fetch the first and the last block."""
        size = self.byte_count
        self.open().fetch([(0, min(BLOCK, size)), (max(0, size - BLOCK), size)])


def span_of(path: Path, *, offset: int = 0, byte_count: int, name: str = "") -> ByteRange:
    """Make the range of a local or stored file.

    Args:
        path: The file, in a dataset's folder.
        offset: First byte.
        byte_count: Number of bytes.
        name: Its name in errors.

    Raises:
        InputError: It is larger than a file can be.
    """
    check_size(byte_count, LARGEST_OBJECT, where=name or str(path))
    is_stored = not path.exists() and is_remote(path)
    kind = StoredRange if is_stored else ByteRange
    return kind(path=path, offset=offset, byte_count=byte_count, name=name)


class BlockFile(RangeFile):
    """Bytes ``[offset, offset + byte_count)`` of a file in a store, opened for reading.

    Args:
        path: The file, in the folder that represents its dataset.
        offset: First byte.
        byte_count: Number of bytes.
    """

    def __init__(self, path: Path, *, offset: int, byte_count: int) -> None:
        found = stands_for(path)
        assert found
        folder, address = found
        self._blocks = ObjectBlocks(address, path.relative_to(folder).as_posix())
        self._offset, self._size = offset, byte_count
        self._position = 0

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
        origin = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        self._position = max(0, origin + offset)
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Read at the position, up to the end.

        Raises:
            StoreAwayError: The store does not answer.
        """
        view = memoryview(buffer).cast("B")
        count = min(len(view), max(0, self._size - self._position))
        done = 0
        while done < count:
            place = self._offset + self._position + done
            number, inside = divmod(place, BLOCK)
            block = self._blocks.read(number, self._offset + self._size)
            piece = block[inside : inside + count - done]
            if not piece:
                break
            view[done : done + len(piece)] = piece
            done += len(piece)
        self._position += done
        return done

    def fetch(self, spans: Iterable[tuple[int, int]]) -> None:
        """Load the blocks of byte spans ``[start, stop)`` into memory, several in parallel."""
        ends = ((self._offset + start, self._offset + min(stop, self._size)) for start, stop in spans)
        numbers = {number for start, stop in ends for number in range(start // BLOCK, -(-stop // BLOCK))}
        self._blocks.fetch(sorted(numbers), self._offset + self._size)
