"""Progress points: work that takes long says that it goes on, and whoever watches this process listens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Listener = Callable[[str], None]

_listeners: list[Listener] = []
_patience: list[Callable[[float], None]] = []


def subscribe(listener: Listener, *, patience: Callable[[float], None] | None = None) -> None:
    """From now on, tell ``listener`` of every progress point of this process, with the phase or an empty text.

    Args:
        listener: Is told.
        patience: Is asked for it, in seconds; 0: no longer.
    """
    _listeners[:] = [listener]
    _patience[:] = [patience] if patience else []


def tick(phase: str = "") -> None:
    """Say that work goes on, and in which phase, when that is another one.

    Call it from the main thread, where work of bounded size begins or ends: a motion, a few images.

    Args:
        phase: ``load``, ``randomize``, ``plan``, ``render``, ``store``; empty for the same as before.
    """
    for listener in _listeners:
        listener(phase)


@contextmanager
def allow(seconds: float) -> Iterator[None]:
    """Around work that may take so long [s] without a progress point, as what compiles at its first use."""
    for ask in _patience:
        ask(seconds)
    try:
        yield
    finally:
        for ask in _patience:
            ask(0.0)
