"""Guard around the import of a user's own code: it ends by itself, and the process does not end with it.

Skills are trusted; this is for mistakes. A command that imports one and ends in silence looks as if all were well.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

IMPORT_SECONDS = (30.0, 120.0)
"""[s] That an import may take, of the processor and of the clock; PyTorch takes 5 and 20 on a slow machine."""
_ENDS = ("_exit", "execv", "execve")
"""Functions of :mod:`os` that end a process without a word, or put another program in its place."""
_SIGNALS = ("SIGPROF", "SIGALRM")


class UnendingImportError(BaseException):
    """Import that takes too long, or would end the process; no handler of errors in the imported code takes it."""


@contextmanager
def guarded_import() -> Iterator[None]:
    """Refuse, while code is imported, what ends the process; interrupt it when it takes too long.

    Time is watched in the main thread alone, where Python delivers signals.

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
        with _watched():
            yield
    finally:
        for name, function in kept.items():
            setattr(os, name, function)


@contextmanager
def _watched() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return
    timers = (signal.ITIMER_PROF, signal.ITIMER_REAL)
    numbers = [getattr(signal, name) for name in _SIGNALS]
    before = [signal.signal(number, _interrupt) for number in numbers]
    for timer, seconds in zip(timers, IMPORT_SECONDS, strict=True):
        signal.setitimer(timer, seconds, 1.0)  # again, where it is caught
    try:
        yield
    finally:
        for timer, number, handler in zip(timers, numbers, before, strict=True):
            signal.setitimer(timer, 0.0)
            signal.signal(number, handler)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    processor, clock = IMPORT_SECONDS
    limit = f"{processor:g} s of the processor" if number == getattr(signal, "SIGPROF", 0) else f"{clock:g} s"
    raise UnendingImportError(f"does not end after {limit}: it may do nothing but define")
