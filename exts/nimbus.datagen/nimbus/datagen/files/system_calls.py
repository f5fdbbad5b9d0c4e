"""Filters of system calls for limited processes, in the instructions of the kernel's packet filter (seccomp).

Landlock limits files and TCP. This filter refuses what Landlock does not know: other sockets, typing into a terminal,
whose shell would execute the text without limits, and, for an isolated process, changes of modes and owners and
calls that reach other processes or rarely used parts of the kernel.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

_CAPABILITY_VERSION = 0x20080522
_KEPT_CAPABILITIES = 0b101011
"""Capabilities of limited processes: CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER and CAP_KILL."""
_NO_NEW_PRIVILEGES = 38
_SET_SECCOMP, _FILTER = 22, 2
_LOAD, _IF_EQUAL, _IF_AT_LEAST, _IF_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
"""Load a word of the call's description, three jumps, and the end."""
_NUMBER, _MACHINE, _FIRST_ARGUMENT = 0, 4, 16
"""Places in the description of a call [bytes]."""
_ALLOW, _RESULT = 0x7FFF0000, 0x00050000
_X32 = 0x40000000
"""Calls with this bit have the x32 convention of x86-64, and numbers of their own."""
_PUT_INPUT, _PUT_INPUT_ON_CONSOLE = 0x5412, 0x541C
"""Requests to ``ioctl`` that put text into the input of a terminal (TIOCSTI, TIOCLINUX)."""
_NAMESPACES = 0x7E020000
"""Flags of ``clone`` for new namespaces, in which a process has rights that it does not have otherwise."""

_Numbers = tuple[int | None, int | None]
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""Column in the tables of calls, and number of each kind of machine."""
_CALLS: dict[str, _Numbers] = {
    "clone": (56, 220),
    "clone3": (435, 435),
    "io_uring_setup": (425, 425),
    "ioctl": (16, 29),
    "prlimit64": (302, 261),
    "socket": (41, 198),
    "truncate": (76, 45),
}
_OF_SERVERS: dict[str, _Numbers] = {"accept": (43, 202), "accept4": (288, 242)}
"""Calls by which a server takes the connection of a client."""
_CHANGES_OF_FILES: dict[str, _Numbers] = {
    "chmod": (90, None),
    "chown": (92, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "fchown": (93, 55),
    "fchownat": (260, 54),
    "fremovexattr": (199, 16),
    "fsetxattr": (190, 7),
    "file_setattr": (469, 469),
    "futimesat": (261, None),
    "lchown": (94, None),
    "lremovexattr": (198, 15),
    "lsetxattr": (189, 6),
    "removexattr": (197, 14),
    "removexattrat": (466, 466),
    "setxattr": (188, 5),
    "setxattrat": (463, 463),
    "utime": (132, None),
    "utimensat": (280, 88),
    "utimes": (235, None),
}
"""Calls that change what the kernel states about a file: its mode, owner, times and attributes."""
_CORES: dict[str, _Numbers] = {"sched_setaffinity": (203, 122)}
"""Call that binds a process or a thread to cores; libraries end if it fails for their own threads."""
_ON_OTHERS: dict[str, _Numbers] = {
    "add_key": (248, 217),
    "bpf": (321, 280),
    "fanotify_init": (300, 262),
    "inotify_init": (253, None),
    "inotify_init1": (294, 26),
    "ioprio_set": (251, 30),
    "keyctl": (250, 219),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "msgctl": (71, 187),
    "msgget": (68, 186),
    "msgrcv": (70, 188),
    "msgsnd": (69, 189),
    "perf_event_open": (298, 241),
    "pidfd_getfd": (438, 438),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "request_key": (249, 218),
    "sched_setattr": (314, 274),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "semctl": (66, 191),
    "semget": (64, 190),
    "semop": (65, 193),
    "semtimedop": (220, 192),
    "setns": (308, 268),
    "setpriority": (141, 140),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "shmget": (29, 194),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
}
"""Calls that reach other processes, shared memory and keys, and parts of the kernel that no parser needs."""


class _Instruction(NamedTuple):
    code: int
    if_true: int
    if_false: int
    value: int


class _Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p)]


@cache
def has_filters() -> bool:
    """Return True if this kernel has filters of system calls, and this module knows its kind of machine."""
    if sys.platform != "linux" or platform.machine() not in _MACHINES:
        return False
    # Without a program nothing is set: a kernel with filters fails to read it, another one knows no such request.
    return bool(c_library().prctl(_SET_SECCOMP, _FILTER, None, 0, 0)) and ctypes.get_errno() == errno.EFAULT


def refuse_system_calls(*, sockets: Sequence[int] | None, is_isolated: bool = False, may_truncate: bool = True) -> None:
    """Refuse system calls to this thread, and to all threads and processes that it starts afterwards.

    The process must have given up new privileges. A kernel that was built without filters refuses nothing.

    Args:
        sockets: Address families of the sockets that may be created; None for all.
        is_isolated: True for a process that exchanges nothing with others.
        may_truncate: False if Landlock does not limit which closed files may be cut.

    Raises:
        OSError: The kernel refuses the filter.
    """
    cuts = () if may_truncate else _refuse([_CALLS["truncate"]], errno.EACCES)
    _set_filter([*_for_all(sockets), *cuts, *(_for_isolated() if is_isolated else ())])


def refuse_clients() -> None:
    """Refuse that servers of this process, and of those that it starts, accept connections; they wait without an error.

    Raises:
        OSError: The kernel refuses the filter.
    """
    if c_library().prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), "prctl")
    _set_filter([*_refuse(_OF_SERVERS.values(), errno.EAGAIN), *_refuse([_CALLS["io_uring_setup"]], errno.ENOSYS)])


def _set_filter(rules: Sequence[_Instruction]) -> None:
    program = [*_beginning(), *rules, _end()]
    content = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *one) for one in program))
    structure = _Filter(len(program), ctypes.addressof(content))
    if c_library().prctl(_SET_SECCOMP, _FILTER, ctypes.byref(structure), 0, 0) and ctypes.get_errno() != errno.EINVAL:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), "seccomp")


def drop_capabilities() -> None:
    """Drop the rights of the superuser, except CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER and CAP_KILL.

    Raises:
        OSError: The kernel refuses.
    """
    header, sets = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0), (ctypes.c_uint32 * 6)()
    if c_library().capget(header, sets):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), "capget")
    kept = [number & _KEPT_CAPABILITIES if place < 2 else 0 for place, number in enumerate(sets)]
    if c_library().capset(header, (ctypes.c_uint32 * 6)(*kept)):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), "capset")


def _beginning() -> list[_Instruction]:
    """Return the instructions that load the number of the call; jumps skip the given number of instructions."""
    return [
        _load(_MACHINE),
        _Instruction(_IF_EQUAL, 1, 0, _MACHINES[platform.machine()][1]),
        _end(errno.ENOSYS),  # the 32-bit convention, whose calls have other numbers
        _load(_NUMBER),
        _Instruction(_IF_AT_LEAST, 0, 1, _X32),
        _end(errno.ENOSYS),
    ]


def _for_all(sockets: Sequence[int] | None) -> list[_Instruction]:
    requests = (_PUT_INPUT, _PUT_INPUT_ON_CONSOLE)
    tests = [one for value in requests for one in (_Instruction(_IF_EQUAL, 0, 1, value), _end(errno.EPERM))]
    rules = _when("ioctl", 1, [*tests, _end()])
    # A queue of requests could create sockets past this filter; libraries do without one.
    rules += _refuse([_CALLS["io_uring_setup"]], errno.ENOSYS)
    return rules if sockets is None else rules + _allow_only("socket", sockets)


def _for_isolated() -> list[_Instruction]:
    return [
        # Libraries copy modes and times with files and fail if they cannot. These calls have no effect, but succeed.
        *_refuse((*_CHANGES_OF_FILES.values(), *_CORES.values()), 0),
        *_refuse(_ON_OTHERS.values(), errno.EPERM),
        *_refuse([_CALLS["clone3"]], errno.ENOSYS),  # its flags are in memory; the C library then uses clone
        *_when("clone", 0, [_Instruction(_IF_ANY_BIT, 0, 1, _NAMESPACES), _end(errno.EPERM), _end()]),
        *_allow_only("prlimit64", [0], errno.EPERM),  # limits of the process itself
    ]


def _refuse(calls: Iterable[_Numbers], result: int) -> list[_Instruction]:
    """Return instructions by which calls do nothing and have a result: the number of an error, or 0 for success."""
    numbers = [call[_MACHINES[platform.machine()][0]] for call in calls]
    return [one for call in numbers if call is not None for one in (_Instruction(_IF_EQUAL, 0, 1, call), _end(result))]


def _allow_only(call: str, values: Sequence[int], error: int = errno.EACCES) -> list[_Instruction]:
    """Return instructions that refuse a call unless its first argument is one of the values."""
    tests = [one for value in values for one in (_Instruction(_IF_EQUAL, 0, 1, value), _end())]
    return _when(call, 0, [*tests, _end(error)])


def _when(call: str, argument: int, body: list[_Instruction]) -> list[_Instruction]:
    """Return instructions that load an argument of a call and execute a body, which must end."""
    number = _CALLS[call][_MACHINES[platform.machine()][0]]
    assert number is not None
    return [_Instruction(_IF_EQUAL, 0, len(body) + 1, number), _load(_FIRST_ARGUMENT + 8 * argument), *body]


def _load(place: int) -> _Instruction:
    return _Instruction(_LOAD, 0, 0, place)


def _end(result: int | None = None) -> _Instruction:
    return _Instruction(_RETURN, 0, 0, _ALLOW if result is None else _RESULT | result)


@cache
def c_library() -> ctypes.CDLL:
    """Return the C library of this process, whose functions set ``errno``."""
    library = ctypes.CDLL(None, use_errno=True)
    library.syscall.restype = ctypes.c_long
    return library
