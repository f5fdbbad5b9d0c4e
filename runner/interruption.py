"""Ctrl-C or SIGTERM, said once: finish what is under way, store it, and stop."""

from __future__ import annotations

import signal
import sys
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interruption:
    """Turns the first signal into a wish and the second into a ``KeyboardInterrupt``; use as a context manager.

    ``requested`` says that the first came, ``at_once`` that the second did.
    """

    def __init__(self) -> None:
        self.requested = False
        self.at_once = False

    def __enter__(self) -> Interruption:
        self._before = [signal.signal(number, self._handle) for number in _SIGNALS]
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in zip(_SIGNALS, self._before, strict=True):
            signal.signal(number, handler)

    def _handle(self, signum: int, frame: FrameType | None) -> None:
        if self.requested:
            self.at_once = True
            raise KeyboardInterrupt
        self.requested = True
        sys.stderr.write("stopping after this attempt; Ctrl-C again stops at once\n")
