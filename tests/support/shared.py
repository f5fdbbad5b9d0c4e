"""Folders that one test process makes for all test processes."""

from __future__ import annotations

import fcntl
from collections.abc import Callable
from pathlib import Path

import pytest


def make_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """Return a folder that is filled once in a run of the tests; read it, never write into it.

    Args:
        factory: Folder factory of the test session; under xdist, the processes have folders below a common one.
        name: Name of the folder, unique among all tests.
        make: Function that fills the folder of a path; other processes wait meanwhile.
    """
    base = factory.getbasetemp()
    folder = (base.parent if base.name.startswith("popen-") else base) / "shared" / name
    folder.parent.mkdir(exist_ok=True)
    done = folder.with_suffix(".done")
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            make(folder)
            done.touch()
    return folder
