"""Work shared out over a few processes; what is wrong in one of them is said as if it were in this one."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from typing import TypeVar

from nimbus.datagen.errors import InputError, StorageError

T = TypeVar("T")


def core_count() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1


def make_all(
    make: Callable[[T], None], items: Sequence[T], *, workers: int, tell: Callable[[int], None] = lambda left: None
) -> None:
    """Make every item, in a few processes where there is more than one worker.

    Args:
        make: A function of a module, or a method of what another process can be handed.
        items: What it is called with, shared out in turn.
        workers: Processes; 1 is this one.
        tell: Called with how many items are yet to come, after each.

    Raises:
        InputError: As ``make`` raises it, in whichever process.
    """
    count = min(workers, len(items))
    if count > 1:
        _in_processes(make, items, count, tell)
        return
    for done, item in enumerate(items, start=1):
        make(item)
        tell(len(items) - done)


def _in_processes(make: Callable[[T], None], items: Sequence[T], count: int, tell: Callable[[int], None]) -> None:
    context = multiprocessing.get_context("spawn")
    left = len(items)
    workers, ends = [], []
    for first in range(count):
        mine, theirs = context.Pipe(duplex=False)
        worker = context.Process(target=_work, args=(make, items[first::count], theirs), daemon=True)
        worker.start()
        theirs.close()
        workers.append(worker)
        ends.append(mine)
    try:
        while ends:
            for end in wait(ends):
                assert isinstance(end, Connection)
                try:
                    told = end.recv_bytes().decode()
                except EOFError:
                    ends.remove(end)
                    continue
                if told:
                    kind, what, where, instead = told.split("\0")
                    raise (StorageError if kind == "storage" else InputError)(what, where=where, instead=instead)
                left -= 1
                tell(left)
    finally:
        for worker in workers:
            if ends:
                worker.terminate()
            worker.join()
    if left:
        raise RuntimeError(f"a process died that works for this one: {[worker.exitcode for worker in workers]}")


def _work(make: Callable[[T], None], items: Sequence[T], told: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started this one hears it too, and ends it
    parent = multiprocessing.parent_process()
    for item in items:
        if parent is None or not parent.is_alive():
            return
        try:
            make(item)
        except InputError as error:
            kind = "storage" if isinstance(error, StorageError) else "input"
            told.send_bytes("\0".join((kind, error.what, error.where, error.instead)).encode())
            return
        told.send_bytes(b"")
