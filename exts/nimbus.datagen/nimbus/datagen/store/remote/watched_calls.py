"""Calls of the library of stores, ended when an answer takes too much time or memory.

The library reads errors and listings of a store whole, however long they are.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
import time
from collections.abc import Awaitable, Callable
from functools import cache
from pathlib import Path
from typing import TypeVar

from nimbus.datagen.errors import StoreAwayError
from nimbus.datagen.machine import resident_bytes

T = TypeVar("T")
_SECONDS = 120.0
"""Time for a call [s]; the library itself repeats a request for 20 s."""
_MOST_MEMORY = 512 << 20
"""Memory by which this process may grow during a call [bytes]; a block of an object takes 4 MiB."""
_LEAST_RATE = 50e3
"""Rate of the slowest store that is written to [bytes/s]."""
_LOOK = 0.1
"""Interval between readings of the memory [s]. Most calls are shorter, and are not watched."""
_TRIES = 3
"""Number of calls until the growth counts as the store's, because other threads of this process may have caused it."""
_FREEING = 0.3
"""Time in which the memory of an ended call is freed [s]."""
_ENDING = 5.0
"""Time for the thread of a loop, and for those of the library, to end their work [s]."""
_WORKER = "tokio-rt-worker"
"""Name of the library's threads."""
_QUIET_LOOKS, _PAUSE = 3, 0.01
"""Number of consecutive looks at which these sleep, and the pause before each [s]."""


class LargeAnswerError(StoreAwayError):
    """Raised when the process grew too much during a call."""


def repeated(read: Callable[[], T]) -> T:
    """Return what a function reads by watched calls; repeat it if the process grew meanwhile."""
    for _ in range(_TRIES - 1):
        try:
            return read()
        except LargeAnswerError:
            time.sleep(_FREEING)
    return read()


def watched(start: Callable[[], Awaitable[T]], *, where: str, sent: int = 0) -> T:
    """Return the result of an asynchronous call.

    Args:
        start: Starts the call.
        where: Address, for errors.
        sent: Size of what it sends [bytes], which takes time and memory.

    Raises:
        LargeAnswerError: The process grew too much.
        StoreAwayError: The answer takes too much time.
    """

    async def call() -> T:
        return await start()

    seconds, memory = _SECONDS + sent / _LEAST_RATE, _MOST_MEMORY + 2 * sent
    end, before = time.monotonic() + seconds, 0
    running = asyncio.run_coroutine_threadsafe(call(), _loop(os.getpid()))
    try:
        while True:
            try:
                return running.result(timeout=_LOOK)
            except TimeoutError:
                if running.done():  # the library's own error
                    raise
            before = before or resident_bytes()
            if resident_bytes() - before > memory:
                what = f"the store sends an answer that takes more than {memory >> 20} MiB"
                raise LargeAnswerError(what, where=where, instead="check the address of the store")
            if time.monotonic() > end:
                raise StoreAwayError(f"no whole answer in {seconds:.0f} s", where=where, instead="try again later")
    finally:
        running.cancel()


@cache
def _loop(_process: int) -> asyncio.AbstractEventLoop:
    """Start the loop of this process; a call that is cancelled there frees its memory."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="store-calls", daemon=True)
    thread.start()
    atexit.register(_end, loop, thread)
    return loop


def _end(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    """End the thread of a loop before the interpreter ends, which would abort inside of a function of the library."""
    if thread.is_alive():  # a forked process has no such thread
        loop.call_soon_threadsafe(loop.stop)
        thread.join(_ENDING)
        _wait_for_workers()


def _wait_for_workers() -> None:
    """Wait until the threads of the library sleep: after a call, they release objects of the interpreter."""
    quiet, end = 0, time.monotonic() + _ENDING
    while quiet < _QUIET_LOOKS and time.monotonic() < end:
        time.sleep(_PAUSE)  # threads that wait for the interpreter's lock get it now
        states = [path.read_text() for path in Path("/proc/self/task").glob("*/stat")]
        is_busy = any(f"({_WORKER})" in state and state.rpartition(")")[2].split()[0] != "S" for state in states)
        quiet = 0 if is_busy else quiet + 1
