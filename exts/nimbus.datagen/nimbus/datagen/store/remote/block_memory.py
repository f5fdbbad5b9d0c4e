"""Blocks of objects in the memory of this process."""

from __future__ import annotations

import threading
from collections import OrderedDict

_MEMORY = 192 << 20
"""Largest total size of the blocks [bytes], enough for two pools of samples with lossless images."""


class BlockMemory:
    """Recently used blocks of a process, up to a total size.

    Args:
        most: Largest total size [bytes].
    """

    def __init__(self, most: int) -> None:
        self._most, self._size = most, 0
        self._blocks: OrderedDict[tuple[str, str, int], bytes] = OrderedDict()
        self._turn = threading.Lock()

    def get(self, key: tuple[str, str, int]) -> bytes | None:
        """Return a block by address, object and number; None if it is not in memory."""
        with self._turn:
            if (found := self._blocks.get(key)) is not None:
                self._blocks.move_to_end(key)
            return found

    def add(self, key: tuple[str, str, int], block: bytes) -> None:
        """Keep a block, and drop the least recently used ones."""
        with self._turn:
            if key not in self._blocks:
                self._blocks[key] = block
                self._size += len(block)
            while self._size > self._most and len(self._blocks) > 1:
                self._size -= len(self._blocks.popitem(last=False)[1])

    def clear(self) -> None:
        """Drop all blocks."""
        with self._turn:
            self._blocks.clear()
            self._size = 0


MEMORY = BlockMemory(_MEMORY)
