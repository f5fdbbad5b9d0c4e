"""What was used last stays open, and no more than that."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, Protocol, TypeVar


class Closable(Protocol):
    """What holds a file."""

    def close(self) -> None:
        """Let go of it."""
        ...


T = TypeVar("T", bound=Closable)


class Recent(Generic[T]):
    """Open things by key; the one unused for longest is closed when there are too many.

    Args:
        most: How many stay open.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: OrderedDict[Hashable, T] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """The one of that key; made when it is not open."""
        if key not in self._open:
            made = make()
            while len(self._open) >= self._most:
                self._open.popitem(last=False)[1].close()
            self._open[key] = made
        self._open.move_to_end(key)
        return self._open[key]

    def __len__(self) -> int:
        return len(self._open)

    def close(self) -> None:
        """Close all."""
        while self._open:
            self._open.popitem()[1].close()
