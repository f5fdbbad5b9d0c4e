"""Ctrl-C, SIGTERM or a terminal that closes, said once: finish what is under way, store it, and stop."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from types import FrameType


def _heard() -> Iterator[signal.Signals]:
    yield from (signal.SIGINT, signal.SIGTERM)
    hangup = getattr(signal, "SIGHUP", None)
    if hangup and signal.getsignal(hangup) is not signal.SIG_IGN:  # else nohup was meant
        yield hangup


class Interruption:
    """Turns the first signal into a wish and the second into a ``KeyboardInterrupt``; use as a context manager.

    ``requested`` says that the first came, ``at_once`` that the second did.
    """

    def __init__(self) -> None:
        self.requested = False
        self.at_once = False

    def __enter__(self) -> Interruption:
        self._before = {number: signal.signal(number, self._handle) for number in _heard()}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, signum: int, frame: FrameType | None) -> None:
        if self.requested:
            self.at_once = True
            raise KeyboardInterrupt
        self.requested = True
        with suppress(OSError):  # a terminal that closed
            sys.stderr.write("stopping after this attempt; Ctrl-C again stops at once\n")
