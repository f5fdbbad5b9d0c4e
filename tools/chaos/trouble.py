"""Every way in which a component can go wrong, and the table that says where it does.

``NIMBUS_CHAOS`` names a folder. Its ``faults.json`` lists, by phase and episode, what happens at the first try, at the
second, and so on; a list that ends with ``"*"`` never ends. It comes through the environment, so that nothing of it
enters the dataset. Every fault is written down before it happens, in ``injected.jsonl``.
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
"""[s] What a process left behind sleeps: nobody else sleeps so long."""


def strike(phase: str, index: int) -> None:
    """Do what the table has for this try of this episode's phase; mostly nothing."""
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
    """Write a table; the environment that makes it happen."""
    (folder / "tries").mkdir(parents=True, exist_ok=True)
    (folder / "faults.json").write_text(json.dumps(table))
    return {VARIABLE: str(folder)}


def injected(folder: Path) -> list[dict[str, Any]]:
    """The faults that happened, in order."""
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
    """Append at once, whoever else does; the file's size afterwards."""
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
    os._exit(0)  # as if all were well


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
    """As where the kernel runs out of memory: much of it is taken, and then a SIGKILL from nowhere."""
    taken = bytearray(150 << 20)
    taken[:: resource.getpagesize()] = b"x" * len(taken[:: resource.getpagesize()])
    _kill()


# Hangs


def _hold_lock_in_c() -> None:
    """In C, with the interpreter's lock held; no signal ends it."""
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
    """Again and again in C, with the interpreter's lock held."""
    pause = ctypes.PyDLL(None).usleep
    while True:
        pause(50_000)


def _stop() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def _livelock() -> None:
    while True:
        tick()
        time.sleep(0.001)


# What is left behind


def _orphan(*, then: Callable[[], None] = _kill, environment: dict[str, str] | None = None) -> None:
    subprocess.Popen(["sleep", ORPHAN], start_new_session=True, env=environment)
    then()


def _nameless_orphan() -> None:
    _orphan(environment={})


def _daemon() -> None:
    """A process whose parent is gone at once, and this one goes on."""
    code = f"import subprocess; subprocess.Popen(['sleep', '{ORPHAN}'], start_new_session=True)"
    subprocess.run([sys.executable, "-S", "-c", code], check=True)
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
