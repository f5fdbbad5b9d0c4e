"""Filter of system calls for limited processes, in the instructions of the kernel's packet filter (seccomp).

Landlock limits files and TCP. This filter refuses what it does not know: sockets of other kinds, and typing into a
terminal, whose shell would execute the text without limits.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

_SET_SECCOMP, _FILTER = 22, 2
_LOAD, _IF_EQUAL, _IF_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
"""Load a word of the call's description, two jumps, and the end."""
_NUMBER, _MACHINE, _FIRST_ARGUMENT = 0, 4, 16
"""Places in the description of a call [bytes]."""
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000
_OTHER_CONVENTION = 0x40000000
"""Calls with this bit have the x32 convention of x86-64, and numbers of their own."""
_TYPE, _TYPE_ON_CONSOLE = 0x5412, 0x541C
"""Requests to ``ioctl`` that put text into the input of a terminal (TIOCSTI, TIOCLINUX)."""


@dataclass(frozen=True)
class _Numbers:
    """Numbers of a kind of machine and of its system calls."""

    machine: int
    ioctl: int
    socket: int
    io_uring_setup: int = 425


_OF_MACHINES = {"x86_64": _Numbers(0xC000003E, 16, 41), "aarch64": _Numbers(0xC00000B7, 29, 198)}


class _Instruction(NamedTuple):
    code: int
    if_true: int
    if_false: int
    value: int


class _Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p)]


def refuse_system_calls(sockets: Collection[int] | None) -> None:
    """Refuse system calls to this thread, and to all threads and processes that it starts afterwards.

    The process must have given up new privileges. A kernel that was built without filters refuses nothing.

    Args:
        sockets: Address families of the sockets that may be created; None for all.

    Raises:
        OSError: The kernel refuses the filter.
    """
    program = _program(_OF_MACHINES[platform.machine()], sockets)
    content = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *one) for one in program))
    structure = _Filter(len(program), ctypes.addressof(content))
    if c_library().prctl(_SET_SECCOMP, _FILTER, ctypes.byref(structure), 0, 0) and ctypes.get_errno() != errno.EINVAL:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), "seccomp")


def _program(numbers: _Numbers, sockets: Collection[int] | None) -> list[_Instruction]:
    """Return the instructions; jumps skip the given number of instructions."""
    refused = _end(errno.EPERM)
    return [
        _load(_MACHINE),
        _Instruction(_IF_EQUAL, 1, 0, numbers.machine),
        _end(errno.ENOSYS),  # the 32-bit convention, whose calls have other numbers
        _load(_NUMBER),
        _Instruction(_IF_AT_LEAST, 0, 1, _OTHER_CONVENTION),
        _end(errno.ENOSYS),
        # A queue of requests could create sockets past this filter; libraries do without one.
        _Instruction(_IF_EQUAL, 0, 1, numbers.io_uring_setup),
        _end(errno.ENOSYS),
        *_choose(numbers.ioctl, 1, (_TYPE, _TYPE_ON_CONSOLE), listed=refused, other=_end()),
        *(_choose(numbers.socket, 0, sockets, listed=_end(), other=_end(errno.EACCES)) if sockets is not None else ()),
        _end(),
    ]


def _choose(
    call: int, argument: int, values: Collection[int], *, listed: _Instruction, other: _Instruction
) -> list[_Instruction]:
    """Return the instructions for one call, which end in one of two ways, according to the value of an argument."""
    tests = [_Instruction(_IF_EQUAL, len(values) - place, 0, value) for place, value in enumerate(values)]
    body = [_load(_FIRST_ARGUMENT + 8 * argument), *tests, other, listed]
    return [_Instruction(_IF_EQUAL, 0, len(body), call), *body]


def _load(place: int) -> _Instruction:
    return _Instruction(_LOAD, 0, 0, place)


def _end(error: int = 0) -> _Instruction:
    return _Instruction(_RETURN, 0, 0, _ERROR | error if error else _ALLOW)


@cache
def c_library() -> ctypes.CDLL:
    """Return the C library of this process, whose functions set ``errno``."""
    library = ctypes.CDLL(None, use_errno=True)
    library.syscall.restype = ctypes.c_long
    return library
