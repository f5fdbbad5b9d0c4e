"""Progress points: work that takes long says that it goes on, and whoever watches this process listens."""

from __future__ import annotations

from collections.abc import Callable

Listener = Callable[[str], None]

_listeners: list[Listener] = []


def listen(listener: Listener) -> None:
    """From now on, tell ``listener`` of every progress point of this process, with the phase or an empty text."""
    _listeners[:] = [listener]


def progress(phase: str = "") -> None:
    """Say that work goes on, and in which phase, when that is another one.

    Call it from the main thread, where work of bounded size begins or ends: a motion, a few images.

    Args:
        phase: ``load``, ``randomize``, ``plan``, ``render``, ``store``; empty for the same as before.
    """
    for listener in _listeners:
        listener(phase)
