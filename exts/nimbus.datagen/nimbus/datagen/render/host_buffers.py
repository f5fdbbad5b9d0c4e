"""Buffers on the host for images from a GPU."""

from __future__ import annotations

import weakref
from collections import defaultdict
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

_MOST_BYTES = 4 << 30
"""Size of all page-locked buffers of a renderer, which other programs then lack [bytes]."""


class HostBuffers:
    """Copies images to the host, into page-locked buffers that are used again when no array shows them anymore.

    Into ordinary new arrays, an H100 copied 2.2 GB/s, because every page of them is created during the copy, and the
    launch of the next camera waited for it. Copies to page-locked memory run while the host continues.

    Args:
        pinned: Lock the pages; impossible without a GPU.
        limit: Bound of the size of all buffers [bytes].
    """

    def __init__(self, *, pinned: bool = True, limit: int = _MOST_BYTES) -> None:
        self._pinned, self._limit = pinned, limit
        self._unused: defaultdict[tuple[Any, int], list[wp.array]] = defaultdict(list)
        self.size = 0
        """Size of all buffers [bytes]."""

    def fetch(self, values: wp.array, count: int) -> NDArray[Any]:
        """Begin to copy the first ``count`` elements of a flat array; they are complete when its device has finished.

        The buffer belongs to the returned array and all arrays that show parts of it.
        """
        buffer = self._take(values)
        if buffer is None:
            return values[:count].numpy()
        wp.copy(buffer, values, count=count)
        shown = np.asarray(buffer)
        unused = self._unused[values.dtype, values.size]
        # Called when the last array that shows a part of the buffer is gone, in whatever thread.
        weakref.finalize(shown, unused.append, buffer).atexit = False
        return shown[:count]

    def _take(self, values: wp.array) -> wp.array | None:
        """Return a buffer as large as an array; None where there is no room for it."""
        if unused := self._unused[values.dtype, values.size]:
            return unused.pop()
        if self.size + values.capacity > self._limit:
            self._drop_unused()
        if self.size + values.capacity > self._limit:
            return None
        try:
            buffer = wp.empty(values.size, dtype=values.dtype, device="cpu", pinned=self._pinned)
        except RuntimeError:  # The system may allow fewer locked pages than the limit.
            self._limit = self.size
            return None
        self.size += values.capacity
        return buffer

    def _drop_unused(self) -> None:
        """Free the buffers that no array shows."""
        for buffers in self._unused.values():
            while buffers:  # another thread may return one meanwhile
                self.size -= buffers.pop().capacity
