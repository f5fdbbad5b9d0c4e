"""Copies of images to the host, which a GPU makes while it already renders the next ones."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

_MOST_UNUSED = 1 << 30
"""Largest size of the page-locked memory that is kept for later copies [bytes]."""


class HostCopy:
    """Copy of the first ``count`` values of an array on a device; a GPU makes it in the order of its stream.

    Args:
        values: Flat array, which may be overwritten as soon as this returns.
        count: Number of values.
    """

    def __init__(self, values: wp.array, count: int) -> None:
        self._event: Any = None
        if values.device.is_cpu or not count:
            self._array: NDArray[Any] = values.numpy()[:count].copy()
            return
        buffer, self._array = _POOL.take(values.dtype, count)
        wp.copy(buffer, values, count=count)
        self._event = wp.get_stream(values.device).record_event()

    def wait(self) -> NDArray[Any]:
        """Return the values, when they are there."""
        if self._event is not None:
            wp.synchronize_event(self._event)
            self._event = None
        return self._array


class _PinnedPool:
    """Page-locked memory: a GPU copies to it several times as fast, but each allocation takes milliseconds."""

    def __init__(self) -> None:
        self._unused: dict[tuple[Any, int], list[wp.array]] = {}
        self._size = 0

    def take(self, dtype: Any, count: int) -> tuple[wp.array, NDArray[Any]]:
        """Return memory, and an array on it; the memory is used again once the array and all its views are gone."""
        key = dtype, count
        unused = self._unused.get(key)
        if unused:
            buffer = unused.pop()
            self._size -= buffer.capacity
        else:
            buffer = wp.empty(count, dtype=dtype, device="cpu", pinned=True)
        array = np.asarray(buffer.numpy())
        weakref.finalize(array, self._give_back, key, buffer).atexit = False
        return buffer, array

    def _give_back(self, key: tuple[Any, int], buffer: wp.array) -> None:
        if self._size + buffer.capacity > _MOST_UNUSED:
            return
        self._unused.setdefault(key, []).append(buffer)
        self._size += buffer.capacity


_POOL = _PinnedPool()
