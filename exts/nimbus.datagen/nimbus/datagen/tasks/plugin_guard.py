"""Guard around the import of a user's own code: it ends by itself, and the process does not end with it.

Skills are trusted; this is for mistakes. A command that imports one and ends in silence looks as if all were well.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

IMPORT_SECONDS = (30.0, 120.0)
"""[s] That an import may take, of the processor and of the clock; PyTorch takes 5 and 20 on a slow machine."""
_ENDS = ("_exit", "execv", "execve")
"""Functions of :mod:`os` that end a process without a word, or put another program in its place."""
_SIGNALS = ("SIGPROF", "SIGALRM")
_AGAIN = 1.0
"""[s] After which an import that caught the interruption is interrupted again; to end it takes far less."""


class UnendingImportError(BaseException):
    """Import that takes too long, or would end the process; no handler of errors in the imported code takes it."""


@contextmanager
def guarded_import() -> Iterator[None]:
    """Refuse, while code is imported, what ends the process; interrupt it when it takes too long.

    Time is watched in the main thread alone, where Python delivers signals. Threads that are started do not keep the
    process alive at its end.

    Raises:
        UnendingImportError: It takes longer than :data:`IMPORT_SECONDS`, or calls a function that ends the process.
    """
    kept = {name: getattr(os, name) for name in _ENDS if hasattr(os, name)}
    own = os.getpid()

    def replaced(name: str) -> Any:
        def refuse(*arguments: Any) -> NoReturn:
            if os.getpid() != own:  # a child that the import made for itself may end as it likes
                kept[name](*arguments)
            raise UnendingImportError(f"calls os.{name}: the process would end without a word")

        return refuse

    for name in kept:
        setattr(os, name, replaced(name))
    try:
        with _daemon_threads(), _watched():
            yield
    finally:
        for name, function in kept.items():
            setattr(os, name, function)


@contextmanager
def _daemon_threads() -> Iterator[None]:
    """Make threads that this one starts daemons: Python waits at its end for all others, also for an endless one."""
    importer, start = threading.current_thread(), threading.Thread.start

    def start_daemon(thread: threading.Thread) -> None:
        if threading.current_thread() is importer and not thread.is_alive():
            thread.daemon = True
        start(thread)

    setattr(threading.Thread, "start", start_daemon)  # noqa: B010 - put back below
    try:
        yield
    finally:
        setattr(threading.Thread, "start", start)  # noqa: B010


@contextmanager
def _watched() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return
    watch = _Watch()
    before = [signal.signal(getattr(signal, name), watch.interrupt) for name in _SIGNALS]
    for timer, seconds in zip(_timers(), IMPORT_SECONDS, strict=True):
        signal.setitimer(timer, seconds)
    try:
        try:
            yield
        finally:
            watch.is_over = True
    finally:  # reached also where the signal came on the way to the line above; the next one is a second away
        watch.is_over = True
        for timer, name, handler in zip(_timers(), _SIGNALS, before, strict=True):
            signal.setitimer(timer, 0.0)
            signal.signal(getattr(signal, name), handler)


def _timers() -> tuple[int, int]:
    return signal.ITIMER_PROF, signal.ITIMER_REAL


class _Watch:
    """Interruption of one import by signals."""

    is_over = False
    """The import has ended."""

    def interrupt(self, number: int, frame: FrameType | None) -> None:
        """Interrupt the import; both timers start again, so that what ends it is not interrupted too.

        Raises:
            UnendingImportError: Always, while the import goes on.
        """
        if self.is_over:
            return
        for timer in _timers():
            signal.setitimer(timer, _AGAIN)
        if self._is_doubled():
            return
        processor, clock = IMPORT_SECONDS
        limit = f"{processor:g} s of the processor" if number == getattr(signal, "SIGPROF", 0) else f"{clock:g} s"
        raise UnendingImportError(f"does not end after {limit}: it may do nothing but define")

    _last = -_AGAIN
    """[s] Moment of the last interruption."""

    def _is_doubled(self) -> bool:
        """Distinguish a signal that was pending with the one before from one of a timer started again."""
        before, self._last = self._last, time.monotonic()
        return self._last - before < _AGAIN / 2
