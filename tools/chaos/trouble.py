"""Faults of components, and the table of the phases and episodes in which they occur.

``NIMBUS_CHAOS`` names a folder. Its ``faults.json`` lists, by phase and episode, the faults at the first try, at the
second, and so on; ``"*"`` repeats the last fault forever. The folder is passed in the environment, so the dataset does
not contain any of it. Every fault is recorded in ``injected.jsonl`` before it happens.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from nimbus.datagen.progress import tick

VARIABLE = "NIMBUS_CHAOS"
REPEAT = "*"
ORPHAN = "86399"
"""Sleep of a process left behind [s]; no other process sleeps for this time."""


def strike(phase: str, index: int) -> None:
    """Inject the table's fault for this try of the episode's phase, if there is any."""
    folder = os.environ.get(VARIABLE)
    if not folder:
        return
    table = _table(folder)
    for kind in filter(None, (table.get(phase), _due(Path(folder), table, f"{phase}:{index}"))):
        name, _, argument = kind.partition(":")
        if name not in HARMLESS:
            _write_down(Path(folder), kind=name, phase=phase, idx=index)
        KINDS[name](*((float(argument),) if argument else ()))


def plan_faults(folder: Path, table: dict[str, Any]) -> dict[str, str]:
    """Write a table; return the environment variables that activate it."""
    (folder / "tries").mkdir(parents=True, exist_ok=True)
    (folder / "faults.json").write_text(json.dumps(table))
    return {VARIABLE: str(folder)}


def injected(folder: Path) -> list[dict[str, Any]]:
    """Return the faults that happened, in order."""
    path = folder / "injected.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@cache
def _table(folder: str) -> dict[str, Any]:
    return json.loads(Path(folder, "faults.json").read_text())


def _due(folder: Path, table: dict[str, Any], key: str) -> str:
    kinds = table.get(key)
    if not kinds:
        return ""
    tries = _append(folder / "tries" / key.replace(":", "-"), b".")
    if kinds[-1] == REPEAT:
        return kinds[min(tries, len(kinds) - 1) - 1]
    return kinds[tries - 1] if tries <= len(kinds) else ""


def _append(path: Path, content: bytes) -> int:
    """Append atomically, even if other processes append too; return the file's new size."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        os.write(descriptor, content)
        return os.fstat(descriptor).st_size
    finally:
        os.close(descriptor)


def _write_down(folder: Path, **facts: Any) -> None:
    line = json.dumps(facts | {"pid": os.getpid(), "time": time.time()})
    _append(folder / "injected.jsonl", f"{line}\n".encode())


# Deaths


def _raise() -> None:
    raise RuntimeError("a wheel came off")


def _exit() -> None:
    os._exit(7)


def _leave() -> None:
    os._exit(0)  # as after a normal end


def _segfault() -> None:
    ctypes.string_at(0)


def _abort() -> None:
    os.abort()


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _no_memory() -> None:
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + (64 << 20), resource.RLIM_INFINITY))
    bytearray(1 << 30)


def _hog() -> None:
    """Allocate much memory and end by SIGKILL, as if the kernel had run out of memory."""
    taken = bytearray(150 << 20)
    taken[:: resource.getpagesize()] = b"x" * len(taken[:: resource.getpagesize()])
    _kill()


# Hangs


def _hold_lock_in_c() -> None:
    """Hang in C with the interpreter's lock held, where no Python signal handler can run."""
    mutex = ctypes.create_string_buffer(64)
    lock = ctypes.PyDLL(None).pthread_mutex_lock
    lock(mutex)
    lock(mutex)


def _deadlock() -> None:
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


def _blocked_read() -> None:
    os.read(os.pipe()[0], 1)


def _spin() -> None:
    while True:
        pass


def _slices() -> None:
    """Hang in many short calls of C with the interpreter's lock held."""
    pause = ctypes.PyDLL(None).usleep
    while True:
        pause(50_000)


def _stop() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def _livelock() -> None:
    while True:
        tick()
        time.sleep(0.001)


# Processes left behind


def _orphan(*, then: Callable[[], None] = _kill, environment: dict[str, str] | None = None) -> None:
    subprocess.Popen(["sleep", ORPHAN], start_new_session=True, env=environment)
    then()


def _nameless_orphan() -> None:
    _orphan(environment={})


def _daemon() -> None:
    """Leave a process whose parent ends at once, and continue."""
    code = f"import subprocess; subprocess.Popen(['sleep', '{ORPHAN}'], start_new_session=True)"
    subprocess.run([sys.executable, "-P", "-S", "-c", code], check=True)
    _kill()


# No faults

_leaked: list[bytearray] = []


def _leak(megabytes: float) -> None:
    _leaked.append(bytearray(b"x") * int(megabytes * 1e6))


KINDS: dict[str, Callable[..., None]] = {
    "exception": _raise,
    "exit": _exit,
    "exit_0": _leave,
    "sigsegv": _segfault,
    "sigabrt": _abort,
    "sigkill": _kill,
    "memory_error": _no_memory,
    "out_of_memory": _hog,
    "setsid_orphan": _orphan,
    "nameless_orphan": _nameless_orphan,
    "daemon": _daemon,
    "hang_gil_in_c": _hold_lock_in_c,
    "hang_lock": _deadlock,
    "hang_read": _blocked_read,
    "hang_python_loop": _spin,
    "hang_c_slices": _slices,
    "hang_sigstop": _stop,
    "livelock": _livelock,
    "slow": time.sleep,
    "leak": _leak,
}
HARMLESS = ("slow", "leak")
DEATHS = tuple(KINDS)[:11]
HANGS = tuple(KINDS)[11:18]
TOLD_AS = {
    **dict.fromkeys(("exception", "memory_error"), "exception"),
    **dict.fromkeys(("sigkill", "out_of_memory", "setsid_orphan", "nameless_orphan", "daemon"), "sigkill"),
    **dict.fromkeys(HANGS, "hang"),
    **{"exit": "exit_code_7", "exit_0": "exit_code_0", "sigsegv": "sigsegv", "sigabrt": "sigabrt"},
}
"""Names of the faults in the ledger."""
