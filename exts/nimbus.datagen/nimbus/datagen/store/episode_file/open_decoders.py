"""Memory of all open decoders of videos of this process together.

A stream may make its decoder keep 17 images, and readers keep many files open, so small files with large images would
fill the memory. Decoders that were not used for the longest time are closed; their readers open them again.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from typing import Protocol
from weakref import ReferenceType, ref

_MOST_BYTES = 1 << 30
"""Memory of all decoders, by their largest number of images [bytes]. 48 decoders of 640 x 480 take a third of it."""
_MOST_IMAGES = 17
"""Number of images that a decoder may keep."""


class Restful(Protocol):
    """A reader whose decoder can be closed until its next use."""

    def rest(self) -> bool:
        """Close the decoder; False if it is in use."""
        ...


class _Decoders:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sizes: OrderedDict[ReferenceType[Restful], int] = OrderedDict()
        """Size of the decoder of each open reader, the least recently used one first [bytes]."""

    def use(self, reader: Restful, image_bytes: int) -> None:
        key = ref(reader)
        with self._lock:
            self._sizes[key] = _MOST_IMAGES * image_bytes
            self._sizes.move_to_end(key)
            total = sum(self._sizes.values())
            for other in list(self._sizes)[:-1]:
                if total <= _MOST_BYTES:
                    break
                held = other()
                if held is None or held.rest():
                    total -= self._sizes.pop(other)

    def forget(self, reader: Restful) -> None:
        with self._lock:
            self._sizes.pop(ref(reader), None)


_known = _Decoders()


def use_decoder(reader: Restful, *, image_bytes: int) -> None:
    """Count the decoder of a reader as open and just used; close others while all together are too large.

    Args:
        reader: The reader. A weak reference is kept.
        image_bytes: Size of one of its images [bytes].
    """
    _known.use(reader, image_bytes)


def forget_decoder(reader: Restful) -> None:
    """Count the decoder of a reader as closed."""
    _known.forget(reader)


def _reset() -> None:
    global _known  # a forked process may have copied a lock that a thread of its parent held
    _known = _Decoders()


os.register_at_fork(after_in_child=_reset)
