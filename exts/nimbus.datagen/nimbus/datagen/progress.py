"""Progress points: long work signals progress, and a listener in the process receives it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Listener = Callable[[str], None]

_listeners: list[Listener] = []
_patience: list[Callable[[float], None]] = []


def subscribe(listener: Listener, *, patience: Callable[[float], None] | None = None) -> None:
    """Call ``listener`` from now on at every progress point of this process, with the phase or an empty text.

    Args:
        listener: Receiver of the phase.
        patience: Receiver of requests for a longer limit [s]; 0 ends it.
    """
    _listeners[:] = [listener]
    _patience[:] = [patience] if patience else []


def tick(phase: str = "") -> None:
    """Signal progress, and the phase when it changes.

    Call it from the main thread, at the begin or end of work of bounded size: a motion, a few images.

    Args:
        phase: ``load``, ``randomize``, ``plan``, ``render``, ``store``; empty for the current one.
    """
    for listener in _listeners:
        listener(phase)


@contextmanager
def allow(seconds: float) -> Iterator[None]:
    """Allow work in the block to take this long [s] without a progress point, as for a compilation at first use."""
    for ask in _patience:
        ask(seconds)
    try:
        yield
    finally:
        for ask in _patience:
            ask(0.0)
