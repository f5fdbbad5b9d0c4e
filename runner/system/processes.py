"""Processes of a cell on Linux: they die with their parent, and the launcher reaps them and kills leftovers."""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import FrameType

from nimbus.runner.system.output import write_error

TAG = "NIMBUS_CELL"
"""Environment variable with the cell's tag, which all its processes share; see :func:`sweep`."""
LAUNCHER = "NIMBUS_LAUNCHER"
"""Environment variable with the process id of the cell's launcher."""
ALIVE = "still alive"
"""Result of :func:`reap` for a process that does not end."""

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_SWEEP_PATIENCE = 5.0
"""Time limit for processes to end after SIGKILL [s]."""
_EXECUTION = 0.1
"""Time limit for the kernel to execute a program [s]."""
_PROC = Path("/proc")


def become_subreaper() -> None:
    """Make this process the parent of descendants whose own parent dies."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(expected_parent: int) -> None:
    """Let the kernel kill this process as soon as its parent dies, or at once if the parent has changed.

    The signal follows the parent's *thread* that forked or adopted it, so fork from the main thread. Processes forked
    from this one do not inherit the setting.
    """
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != expected_parent:
        os.kill(os.getpid(), signal.SIGKILL)


def ignore_stop_signals() -> None:
    """Ignore Ctrl-C and SIGTERM, which a service manager sends to all processes, so that work in progress can finish.

    Programs executed by this process have the default handling again.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)


def thread_count() -> int:
    """Return the number of this process's threads, including those of libraries; a fork is only safe with one."""
    return len(os.listdir("/proc/self/task"))


def open_pidfd(pid: int) -> int:
    """Return a descriptor of a process; it becomes readable when the process ends, and never refers to a reused id.

    Raises:
        ProcessLookupError: The process does not exist, or was reaped.
    """
    return os.pidfd_open(pid)


def kill_group(pid: int) -> None:
    """Kill a child that is not reaped yet, and the group that it leads; ignore processes that have ended.

    Call this before :func:`reap`: the id of a reaped process may belong to an unrelated process.
    """
    if pid <= 1 or pid in (os.getpid(), os.getpgrp()):
        raise ValueError(f"process {pid} must not be killed")
    for kill in (os.killpg, os.kill):  # the child leads no group before it calls setsid
        with contextlib.suppress(ProcessLookupError):
            kill(pid, signal.SIGKILL)


def reap(pid: int, *, patience: float = 5.0) -> str:
    """Wait for a child that has ended, or is about to.

    Args:
        pid: The child.
        patience: Longest wait [s]; a process in uninterruptible disk I/O can outlive SIGKILL.

    Returns:
        ``exit code 3``, ``killed by SIGSEGV``, ``gone`` if it was already reaped, or :data:`ALIVE`.
    """
    with contextlib.suppress(ProcessLookupError):
        descriptor = open_pidfd(pid)
        try:
            _ended(descriptor, patience)
        finally:
            os.close(descriptor)
    try:
        reaped, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return "gone"
    return describe(os.waitstatus_to_exitcode(status)) if reaped else ALIVE


def describe(code: int) -> str:
    """Describe a return code of :mod:`subprocess`; a negative code means a signal."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"


def orphans(known: set[int]) -> list[int]:
    """Return this process's children that are not in ``known``: orphans of dead workers, running or not.

    A new worker whose process has not been announced yet is also returned.
    """
    lists = list(Path("/proc/self/task").glob("*/children"))
    if not lists:  # the kernel was built without these lists
        return [pid for pid in _own_processes() if _parent(pid) == os.getpid() and pid not in known]
    children: set[int] = set()
    for file in lists:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # the thread has just ended
            children.update(map(int, file.read_text().split()))
    return sorted(children - known)


def sweep(tag: str) -> int:
    """Kill every process of this user started with ``NIMBUS_CELL=<tag>`` in its environment.

    This process, its ancestors, and the processes of another running launcher are spared. A forked process has the
    environment with which its ancestor was *executed*, so the first process of a cell must be executed with the tag;
    setting it later has no effect.

    Returns:
        Number of killed processes.
    """
    spared, killed = {os.getpid(), *_ancestors()}, 0
    deadline = time.monotonic() + _SWEEP_PATIENCE
    while found := [pid for pid in _own_processes() if pid not in spared and _has_tag(pid, tag)]:
        if time.monotonic() > deadline:
            break
        for pid in found:
            killed += _kill_tagged(pid, tag, deadline)
    return killed


def cell_tag(folder: Path | str) -> str:
    """Return the tag of the cell that fills a dataset's folder: the folder's real path."""
    return os.path.realpath(folder)


def resident_bytes(pid: int) -> int:
    """Return the resident memory of a process, including shared pages [bytes]; 0 if it has ended."""
    try:
        return int((_PROC / str(pid) / "statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
    except (OSError, IndexError):
        return 0


def is_in_kernel(pid: int) -> bool:
    """Return True if a process waits in the kernel, usually for a disk, where signals do not reach it."""
    return _stat(pid)[:1] == ["D"]


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0):
        number = ctypes.get_errno()
        raise OSError(number, f"prctl {option}: {os.strerror(number)}")


def _ended(descriptor: int, seconds: float) -> bool:
    """Wait for the process of a descriptor to end."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(max(0.0, seconds) * 1e3))


def _kill_tagged(pid: int, tag: str, deadline: float) -> bool:
    try:
        descriptor = open_pidfd(pid)
    except OSError:
        return False
    try:
        # Checked again: with the descriptor open, the id can no longer pass to another process unnoticed.
        if not _has_tag(pid, tag):
            return False
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        return _ended(descriptor, deadline - time.monotonic())
    except ProcessLookupError:
        return False
    finally:
        os.close(descriptor)


def _own_processes() -> Iterator[int]:
    user = os.getuid()
    for entry in os.scandir(_PROC):
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and entry.stat().st_uid == user:
                yield int(entry.name)


def _has_tag(pid: int, tag: str) -> bool:
    environment = _environment(pid)
    return os.fsencode(f"{TAG}={tag}") in environment and not _is_of_another(environment)


def _environment(pid: int) -> list[bytes]:
    """Return the environment with which a process was executed; nothing if it has ended.

    It is empty for an instant while the kernel executes a program, in which a sweep would miss the process.
    """
    deadline = time.monotonic() + _EXECUTION
    try:
        while not (content := (_PROC / str(pid) / "environ").read_bytes()):
            if not _has_memory(pid) or time.monotonic() > deadline:  # it has ended, or was given no environment
                break
            time.sleep(0.001)
    except OSError:
        return []
    return content.split(b"\0")


def _has_memory(pid: int) -> bool:
    """Return False for a process that has ended and waits for its parent, and for a thread of the kernel."""
    return not (_PROC / str(pid) / "statm").read_text().startswith("0 ")


def _is_of_another(environment: list[bytes]) -> bool:
    """Return True if a process belongs to another running launcher, such as that of a refused second run."""
    launchers = [
        entry.partition(b"=")[2].decode() for entry in environment if entry.startswith(f"{LAUNCHER}=".encode())
    ]
    return any(pid.isdigit() and int(pid) != os.getpid() and (_PROC / pid).exists() for pid in launchers)


def _ancestors() -> Iterator[int]:
    pid = os.getppid()
    while pid > 0:
        yield pid
        pid = _parent(pid)


def _parent(pid: int) -> int:
    """Return the parent of a process; 0 if it has ended."""
    return int((_stat(pid)[1:2] or ["0"])[0])


def _stat(pid: int) -> list[str]:
    """Return state, parent and further fields of a process; empty if it has ended."""
    try:
        # The process's name, in parentheses, may contain any characters, even parentheses.
        return (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def _heard() -> Iterator[signal.Signals]:
    yield from (signal.SIGINT, signal.SIGTERM)
    hangup = getattr(signal, "SIGHUP", None)
    if hangup and signal.getsignal(hangup) is not signal.SIG_IGN:  # otherwise the process runs under nohup
        yield hangup


class Interruption:
    """Context manager that turns the first signal into a request to stop, and the second into a ``KeyboardInterrupt``.

    ``requested`` is true after the first, ``at_once`` after the second.
    """

    def __init__(self) -> None:
        self.requested = False
        self.at_once = False

    def __enter__(self) -> Interruption:
        self._before = {number: signal.signal(number, self._handle) for number in _heard()}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, signum: int, frame: FrameType | None) -> None:
        if self.requested:
            self.at_once = True
            raise KeyboardInterrupt
        self.requested = True
        with suppress(OSError):  # a terminal that closed
            write_error("stopping after this attempt; Ctrl-C again stops at once\n")
