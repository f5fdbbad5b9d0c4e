"""A file of a store that is read in blocks, each kept on this machine."""

from __future__ import annotations

import io
import os
import zlib
from collections import OrderedDict
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from nimbus.datagen.files.atomic import write_atomic
from nimbus.datagen.files.own_files import make_place
from nimbus.datagen.store.byte_range import ByteRange
from nimbus.datagen.store.remote.address import parse_address
from nimbus.datagen.store.remote.cache_root import stands_for
from nimbus.datagen.store.remote.lru import note_use
from nimbus.datagen.store.remote.working_copy import BUDGET, TRAFFIC, copy_folder, entry_lock, is_remote, open_store

BLOCK = 1 << 20
"""Size of a read [bytes]: of a 50 MB episode, one image and the signals are 4 requests; with 64 kB they are 8."""
_CHECK_BYTES = 4
"""Size of the CRC-32 that follows each cached block [bytes]."""
_BLOCKS = "blocks"
"""Folder of the copy, with one of each file."""
_IN_MEMORY = 8
"""Blocks of an open file that stay in memory."""
_THREADS = 8
"""Blocks that are fetched at the same time."""


@dataclass(frozen=True, kw_only=True)
class StoredRange(ByteRange):
    """A :class:`ByteRange` of a file in a store, which is read from there in blocks."""

    @property
    def is_here(self) -> bool:
        """Return False."""
        return False

    def open(self) -> BlockFile:
        """Open for reading; nothing is read yet."""
        return BlockFile(self.path, offset=self.offset, byte_count=self.byte_count)


def span_of(path: Path, *, offset: int = 0, byte_count: int, name: str = "") -> ByteRange:
    """Make the range of a file, here or in a store.

    Args:
        path: The file, in a dataset's folder.
        offset: First byte.
        byte_count: Bytes from there on.
        name: Its name in errors.
    """
    is_stored = not path.exists() and is_remote(path)
    kind = StoredRange if is_stored else ByteRange
    return kind(path=path, offset=offset, byte_count=byte_count, name=name)


class BlockFile(io.RawIOBase):
    """Bytes ``[offset, offset + byte_count)`` of a file in a store, opened for reading.

    Args:
        path: The file, in the folder that stands for its dataset.
        offset: First byte.
        byte_count: Bytes from there on.
    """

    def __init__(self, path: Path, *, offset: int, byte_count: int) -> None:
        found = stands_for(path)
        assert found
        folder, address = found
        self._copy = copy_folder(parse_address(address))
        self._name = path.relative_to(folder).as_posix()
        self._store = open_store(address)
        self._offset, self._size = offset, byte_count
        self._position = 0
        self._recent: OrderedDict[int, bytes] = OrderedDict()

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
        """Move; returns the new position."""
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
            block = self._block(number)
            piece = block[inside : inside + count - done]
            if not piece:
                break
            view[done : done + len(piece)] = piece
            done += len(piece)
        self._position += done
        return done

    def prefetch(self, numbers: Iterable[int] | None = None) -> None:
        """Fetch blocks that are not here, several at a time; all of the file where none are named."""
        end = self._offset + self._size
        wanted = range(self._offset // BLOCK, -(-end // BLOCK)) if numbers is None else numbers
        list(_threads().map(self._block, wanted))

    def _block(self, number: int) -> bytes:
        if (found := self._recent.get(number)) is not None:
            return found
        path = self._copy / _BLOCKS / self._name / str(number)
        block = self._kept(path)
        if block is None:
            with entry_lock(self._copy, f"{self._name}/{number}"):
                block = self._kept(path) or self._fetched(number)
        self._recent[number] = block
        while len(self._recent) > _IN_MEMORY:
            with suppress(KeyError):
                self._recent.popitem(last=False)
        return block

    def _kept(self, path: Path) -> bytes | None:
        """Read a block that is here; None where it is not, or is damaged."""
        try:
            content = path.read_bytes()
        except OSError:
            return None
        block, check = content[:-_CHECK_BYTES], content[-_CHECK_BYTES:]
        if zlib.crc32(block).to_bytes(_CHECK_BYTES, "big") != check:
            return None
        note_use(path)
        TRAFFIC.note(self._copy, hits=1, bytes_here=len(block))
        return block

    def _fetched(self, number: int) -> bytes:
        start = number * BLOCK
        end = min(start + BLOCK, self._offset + self._size) if self._is_last(number) else start + BLOCK
        block = self._store.read_range(self._name, start, end - start)
        TRAFFIC.note(self._copy, misses=1, bytes_fetched=len(block))
        if self._is_last(number) and self._offset:
            return block  # of a shard: the next episode needs the rest of it
        content = block + zlib.crc32(block).to_bytes(_CHECK_BYTES, "big")
        with suppress(OSError):  # full or read-only: the block comes from the store then
            path = make_place(self._copy, f"{_BLOCKS}/{self._name}/{number}")
            write_atomic(path, content, durable=False, shared=True)
            BUDGET.add(len(block))
        return block

    def _is_last(self, number: int) -> bool:
        return (number + 1) * BLOCK > self._offset + self._size


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_THREADS, thread_name_prefix="blocks")
