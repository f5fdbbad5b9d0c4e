"""Ctrl-C, said once: finish what is under way, store it, and stop."""

from __future__ import annotations

import signal
import sys
from types import FrameType


class Interruption:
    """Turns the first SIGINT into a wish and the second into a ``KeyboardInterrupt``; use as a context manager."""

    def __init__(self) -> None:
        self.requested = False

    def __enter__(self) -> Interruption:
        self._before = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    def _handle(self, signum: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
        sys.stderr.write("stopping after this attempt; Ctrl-C again stops at once\n")
