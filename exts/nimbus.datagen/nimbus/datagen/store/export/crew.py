"""Episodes prepared in a few processes, where that pays."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from pathlib import Path

from nimbus.datagen.errors import InputError, StorageError
from nimbus.datagen.store.export.parts import Parts
from nimbus.datagen.store.export.source import Item, Source

_PAYS = 20_000_000
"""Pixels that take as long to encode as a process takes to start, and some more."""


def prepare(source: Source, folder: Path, *, workers: int | None = None, tell: Callable[[int], None]) -> None:
    """Prepare what is missing.

    Args:
        source: The dataset.
        folder: Where prepared episodes are kept.
        workers: Processes; as many as pay when not given, 1 is this one.
        tell: Called with how many episodes are yet to come, after each.

    Raises:
        InputError: An episode does not fit in with the others, or cannot be read.
        StorageError: The disk is full.
    """
    missing = Parts(source, folder).missing()
    count = min(workers or _worth(source, missing), len(missing))
    if count > 1:
        _in_processes(source, folder, missing, count, tell)
        return
    for done, item in enumerate(missing, start=1):
        Parts(source, folder).make(item)
        tell(len(missing) - done)


def _worth(source: Source, items: list[Item]) -> int:
    pixels = sum(item.step_count for item in items) * sum(width * height for width, height in source.cameras.values())
    return min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1, 1 + pixels // _PAYS)


def _in_processes(source: Source, folder: Path, items: list[Item], count: int, tell: Callable[[int], None]) -> None:
    context = multiprocessing.get_context("spawn")
    left = len(items)
    workers, ends = [], []
    for first in range(count):
        mine, theirs = context.Pipe(duplex=False)
        worker = context.Process(target=_work, args=(source, folder, items[first::count], theirs), daemon=True)
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
        raise RuntimeError(f"a process that prepares episodes died: {[worker.exitcode for worker in workers]}")


def _work(source: Source, folder: Path, items: list[Item], told: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started this one hears it too, and ends it
    parent = multiprocessing.parent_process()
    parts = Parts(source, folder)
    for item in items:
        if parent is None or not parent.is_alive():
            return
        try:
            parts.make(item)
        except InputError as error:
            kind = "storage" if isinstance(error, StorageError) else "input"
            told.send_bytes("\0".join((kind, error.what, error.where, error.instead)).encode())
            return
        told.send_bytes(b"")
