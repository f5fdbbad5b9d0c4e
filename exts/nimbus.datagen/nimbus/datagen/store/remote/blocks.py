"""Blocks of objects in a store: from memory, from this machine's disk, from another node's cache, or from the store."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.atomic import write_atomic
from nimbus.datagen.files.own_files import make_place
from nimbus.datagen.store.remote.address import parse_address
from nimbus.datagen.store.remote.block_memory import MEMORY
from nimbus.datagen.store.remote.block_peers import peers
from nimbus.datagen.store.remote.lru import note_use
from nimbus.datagen.store.remote.working_copy import BUDGET, TRAFFIC, copy_folder, entry_lock, open_store

BLOCK = 1 << 20
"""Size of a block [bytes]. One image and the signals of a 50 MB episode take 4 requests, and 8 with blocks of 64 kB."""
BLOCKS = "blocks"
"""Folder in a dataset's copy, with one folder of blocks per object."""
_CHECK_BYTES = 4
"""Size of the CRC-32 that is appended to each stored block [bytes]."""
_THREADS = 16
"""Number of blocks fetched in parallel."""


class ObjectBlocks:
    """Blocks of one object.

    Args:
        address: Address of the dataset in a store.
        name: Name of the object below it.
        asks_peers: False to query no other node, as in the cache server itself.
    """

    def __init__(self, address: str, name: str, *, asks_peers: bool = True) -> None:
        self.address, self.name, self._asks_peers = address, name, asks_peers
        self._copy = copy_folder(parse_address(address))

    def read(self, number: int, end: int) -> bytes:
        """Read block ``number``.

        Args:
            number: Number of the block from the start of the object.
            end: Smallest size of the object; the last block may be shorter than the others [bytes].

        Raises:
            StoreAwayError: The store does not answer, or returns fewer bytes.
        """
        key = (self.address, self.name, number)
        if (found := MEMORY.get(key)) is not None:
            return found
        needed = min(BLOCK, end - number * BLOCK)
        block = self._kept(number, needed) or self._from_peer(number, needed)
        if block is None:
            with entry_lock(self._copy, f"{self.name}/{number}"):
                block = MEMORY.get(key) or self._kept(number, needed) or self._fetched(number, needed)
        MEMORY.add(key, block)
        return block

    def fetch(self, numbers: Iterable[int], end: int) -> None:
        """Load blocks into memory, several in parallel; an error is raised only when the block is read."""

        def try_one(number: int) -> None:
            with suppress(InputError):
                self.read(number, end)

        list(_threads(os.getpid()).map(try_one, numbers))

    def _path(self, number: int) -> Path:
        return self._copy / BLOCKS / self.name / str(number)

    def _kept(self, number: int, needed: int) -> bytes | None:
        """Read a block from this machine's disk; None if it is missing or damaged."""
        path = self._path(number)
        try:
            content = path.read_bytes()
        except OSError:
            return None
        block, check = content[:-_CHECK_BYTES], content[-_CHECK_BYTES:]
        if zlib.crc32(block).to_bytes(_CHECK_BYTES, "big") != check or len(block) < needed:
            return None
        note_use(path)
        TRAFFIC.note(self._copy, hits=1, bytes_here=len(block))
        return block

    def _from_peer(self, number: int, needed: int) -> bytes | None:
        """Read a block from a node's cache; no lock is held, because the server may be in this process."""
        block = peers().read(self.address, self.name, number, needed) if self._asks_peers else None
        if block is not None:
            TRAFFIC.note(self._copy, peer_hits=1, bytes_from_peers=len(block))
        return block

    def _fetched(self, number: int, needed: int) -> bytes:
        """Read a block from the store, and keep it."""
        block = open_store(self.address).read_range(self.name, number * BLOCK, BLOCK, least=needed)
        TRAFFIC.note(self._copy, misses=1, bytes_fetched=len(block))
        content = block + zlib.crc32(block).to_bytes(_CHECK_BYTES, "big")
        with suppress(OSError):  # on a full or read-only disk the block is not cached
            path = make_place(self._copy, f"{BLOCKS}/{self.name}/{number}")
            write_atomic(path, content, durable=False, shared=True)
            BUDGET.add(len(block))
        return block


@cache
def _threads(_process: int) -> ThreadPoolExecutor:
    """Start the threads, once per process, because a forked process has none of its parent's threads."""
    return ThreadPoolExecutor(_THREADS, thread_name_prefix="blocks")
