"""Guard around imports of plug-in code: an import must not end the process or run forever.

Plug-ins are trusted; the guard catches mistakes. Without it, a command that ends silently during an import would look
successful.
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

from nimbus.datagen.files.root_imports import import_in_root

IMPORT_SECONDS = (30.0, 120.0)
"""Longest CPU and wall-clock time of an import [s]; PyTorch takes 5 and 20 on a slow machine."""
_ENDS = ("_exit", "execv", "execve")
"""Functions of :mod:`os` that end a process without a message, or replace it by another program."""
_SIGNALS = ("SIGPROF", "SIGALRM")
_AGAIN = 1.0
"""Interval between interruptions of an import that catches them [s]; an import that ends takes far less."""


class UnendingImportError(BaseException):
    """Raised for an import that takes too long or would end the process; handlers of ``Exception`` do not catch it."""


@contextmanager
def guarded_import() -> Iterator[None]:
    """Prevent imported code from ending the process, and interrupt an import that takes too long.

    Time is limited in the main thread only, where Python delivers signals. Threads started by the import do not keep
    the process alive at its end.

    Raises:
        UnendingImportError: An import takes longer than :data:`IMPORT_SECONDS`, or calls a function that ends the
            process.
    """
    kept = {name: getattr(os, name) for name in _ENDS if hasattr(os, name)}
    own = os.getpid()
    import_in_root()

    def replaced(name: str) -> Any:
        def refuse(*arguments: Any) -> NoReturn:
            if os.getpid() != own:  # a child process of the import may end in any way
                kept[name](*arguments)
            raise UnendingImportError(f"calls os.{name}, which would end the process without a message")

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
    """Make threads that are started in the block daemons, because at exit Python waits for all other threads."""
    importer, start = threading.current_thread(), threading.Thread.start

    def start_daemon(thread: threading.Thread) -> None:
        if threading.current_thread() is importer and not thread.is_alive():
            thread.daemon = True
        start(thread)

    setattr(threading.Thread, "start", start_daemon)  # noqa: B010 - restored below
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
    finally:  # this also runs if the signal came just before the line above; the next one is a second away
        watch.is_over = True
        for timer, name, handler in zip(_timers(), _SIGNALS, before, strict=True):
            signal.setitimer(timer, 0.0)
            signal.signal(getattr(signal, name), handler)


def _timers() -> tuple[int, int]:
    return signal.ITIMER_PROF, signal.ITIMER_REAL


class _Watch:
    """Interruption of one import by signals."""

    is_over = False
    """True once the import has ended."""

    def interrupt(self, number: int, frame: FrameType | None) -> None:
        """Interrupt the import; both timers restart, so that its cleanup is not interrupted too.

        Raises:
            UnendingImportError: Always, while the import runs.
        """
        if self.is_over:
            return
        for timer in _timers():
            signal.setitimer(timer, _AGAIN)
        if self._is_doubled():
            return
        processor, clock = IMPORT_SECONDS
        limit = f"{processor:g} s of CPU time" if number == getattr(signal, "SIGPROF", 0) else f"{clock:g} s"
        raise UnendingImportError(f"does not end after {limit}; move work into functions")

    _last = -_AGAIN
    """Time of the last interruption [s]."""

    def _is_doubled(self) -> bool:
        """Return True if the signal was already pending when the previous one arrived."""
        before, self._last = self._last, time.monotonic()
        return self._last - before < _AGAIN / 2
