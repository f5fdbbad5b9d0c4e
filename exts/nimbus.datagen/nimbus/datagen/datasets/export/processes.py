"""Items processed in a few processes, with the errors of one."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any, TypeVar

T = TypeVar("T")

_make: Callable[[Any], None]
"""Function of this worker; sent once, because it may hold a whole dataset's table."""


def make_all(
    make: Callable[[T], None], items: Sequence[T], *, workers: int, tell: Callable[[int], None] = lambda left: None
) -> None:
    """Make every item, in a few processes where there is more than one worker.

    Args:
        make: A function of a module, or a method of an object that can be sent to another process.
        items: Its arguments, started in this order.
        workers: Processes; 1 is this one.
        tell: Called with the number of items that are left, after each.

    Raises:
        InputError: As ``make`` raises it, in whichever process; the others are ended.
        BrokenProcessPool: A process died.
    """
    count = min(workers, len(items))
    if count > 1:
        _in_processes(make, items, count, tell)
        return
    for done, item in enumerate(items, start=1):
        make(item)
        tell(len(items) - done)


def _in_processes(make: Callable[[T], None], items: Sequence[T], count: int, tell: Callable[[int], None]) -> None:
    others = set(multiprocessing.active_children())
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(count, mp_context=context, initializer=_begin, initargs=(make,)) as pool:
        try:
            futures = [pool.submit(_make_one, item) for item in items]
            for done, future in enumerate(as_completed(futures), start=1):
                future.result()
                tell(len(items) - done)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in set(multiprocessing.active_children()) - others:
                process.terminate()
            raise


def _begin(make: Callable[[Any], None]) -> None:
    """Prepare a worker."""
    global _make
    _make = make
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent receives it, too, and ends this process
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this process when its parent dies: the executor's queue alone would keep it waiting."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)


def _make_one(item: Any) -> None:
    _make(item)
