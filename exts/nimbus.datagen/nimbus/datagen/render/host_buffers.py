"""Buffers on the host for images from a GPU."""

from __future__ import annotations

import weakref
from collections import defaultdict
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

_MOST_BYTES = 4 << 30
"""Largest size of all page-locked buffers of a renderer [bytes]; other programs cannot use this memory."""


class HostBuffers:
    """Page-locked buffers for copies of images to the host; a buffer is reused when no array uses it.

    Copies from an H100 to new ordinary arrays ran at only 2.2 GB/s, because the system creates every page during the
    copy, and the launch of the next camera waited for them. Copies to page-locked memory run while the host continues.

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

        The returned array and all views of it keep the buffer in use.
        """
        buffer = self._take(values)
        if buffer is None:
            return values[:count].numpy()
        wp.copy(buffer, values, count=count)
        shown = np.asarray(buffer)
        unused = self._unused[values.dtype, values.size]
        # The callback runs in any thread, when the last array that uses a part of the buffer is deleted.
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
        """Free the buffers that no array uses."""
        for buffers in self._unused.values():
            while buffers:  # another thread may return a buffer meanwhile
                self.size -= buffers.pop().capacity
