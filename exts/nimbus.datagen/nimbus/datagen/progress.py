"""Progress signals: long work emits them, and a listener in the same process receives them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Listener = Callable[[str], None]

_listeners: list[Listener] = []
_patience: list[Callable[[float], None]] = []
_activity: list[Listener] = []
_limits: list[float] = [0.0]
"""Limits of the blocks that are being executed, from the outermost one [s]; 0 without a block."""


def subscribe(listener: Listener, *, patience: Callable[[float], None] | None = None) -> None:
    """Call a listener at every later progress signal of this process, with the phase or an empty text.

    Args:
        listener: Function that receives the phase.
        patience: Function that receives requests for a longer time limit [s]; 0 ends a request.
    """
    _listeners[:] = [listener]
    _patience[:] = [patience] if patience else []


def tick(phase: str = "") -> None:
    """Emit a progress signal, with the phase if it changes.

    Call it from the main thread at the start or end of work of bounded size, such as a motion or a few images.

    Args:
        phase: ``load``, ``randomize``, ``plan``, ``render`` or ``store``; empty for the current phase.
    """
    for listener in _listeners:
        listener(phase)


@contextmanager
def show_activity(listener: Listener) -> Iterator[None]:
    """Call a listener in the block with each description of the work in progress of this process."""
    _activity.append(listener)
    try:
        yield
    finally:
        _activity.remove(listener)


def report_activity(text: str) -> None:
    """Describe the work in progress, for example ``physics at 40 of 85 s``; call it about once per second of data."""
    for listener in _activity:
        listener(text)


@contextmanager
def allow(seconds: float) -> Iterator[None]:
    """Allow the block to take this long [s] without a progress signal, for example for a compilation on first use.

    Blocks may be nested: an inner block does not shorten the outer limit, and its end does not end it.
    """
    _limits.append(max(seconds, _limits[-1]))
    for ask in _patience:
        ask(_limits[-1])
    try:
        yield
    finally:
        _limits.pop()
        for ask in _patience:
            ask(_limits[-1])
