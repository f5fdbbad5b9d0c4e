"""Limits on the files, programs and connections of a process, which the Linux kernel enforces (Landlock, seccomp).

Checks of names and links stand in the code that opens files. These limits hold below that code, also for files that a
library opens by itself: a process that reads files of others may open what was named for it, and nothing else. They
cannot be undone, and hold for all processes that it starts.

A kernel without Landlock, or with a version that forbids renaming between folders (before Linux 5.19), sets no limits.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import platform
import socket
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import IntFlag
from functools import cache
from pathlib import Path

import nimbus
from nimbus.datagen.files.system_calls import c_library, drop_capabilities, refuse_system_calls

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
"""Numbers of the system calls, which are the same on x86-64 and AArch64."""
_MACHINES = ("x86_64", "aarch64")
_GET_VERSION = 1
_PATH_BENEATH = 1
_NO_NEW_PRIVILEGES = 38
_OLDEST = 2
"""First version in which files can be renamed and linked between folders."""
_NETWORK_VERSION, _SCOPE_VERSION = 4, 6
_TCP = 0b11
"""Rights to bind to and to connect to ports of TCP."""
_LOCAL_SOCKETS = (socket.AF_UNIX, getattr(socket, "AF_NETLINK", 16))
"""Address families within this machine; AF_NETLINK describes its network."""
_SCOPES = 0b11
"""Abstract Unix sockets of other processes, and signals to them."""


class _Right(IntFlag):
    """Rights on files, with the numbers of the kernel."""

    EXECUTE = 1 << 0
    WRITE_FILE = 1 << 1
    READ_FILE = 1 << 2
    READ_FOLDER = 1 << 3
    REMOVE_FOLDER = 1 << 4
    REMOVE_FILE = 1 << 5
    MAKE_CHARACTER_DEVICE = 1 << 6
    MAKE_FOLDER = 1 << 7
    MAKE_FILE = 1 << 8
    MAKE_SOCKET = 1 << 9
    MAKE_PIPE = 1 << 10
    MAKE_BLOCK_DEVICE = 1 << 11
    MAKE_LINK = 1 << 12
    MOVE = 1 << 13
    TRUNCATE = 1 << 14
    CONTROL_DEVICE = 1 << 15


_SINCE = {_Right.TRUNCATE: 3, _Right.CONTROL_DEVICE: 5}
"""Rights that are newer than the oldest version that is used."""
_READ = _Right.READ_FILE | _Right.READ_FOLDER
_WRITE = ~(_Right.EXECUTE | _Right.MAKE_CHARACTER_DEVICE | _Right.MAKE_BLOCK_DEVICE)
_RUN = _READ | _Right.EXECUTE
_OF_FILES = _Right.EXECUTE | _Right.WRITE_FILE | _Right.READ_FILE | _Right.TRUNCATE | _Right.CONTROL_DEVICE
"""Rights that a rule about one file, in place of a folder, may give."""

_SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/opt", "/nix/store", "/gnu/store")
"""Folders with programs and libraries."""
_SETTINGS = (
    *("/proc", "/sys", "/dev/urandom", "/dev/random", "/dev/zero", "/run/opengl-driver", "/run/systemd/resolve"),
    *(f"/etc/{name}" for name in ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ssl", "pki", "ca-certificates")),
    *(f"/etc/{name}" for name in ("fonts", "localtime", "timezone", "mime.types", "alternatives", "os-release")),
    *(f"/etc/{name}" for name in ("passwd", "group", "hosts", "host.conf", "resolv.conf", "nsswitch.conf", "gai.conf")),
    *(f"/etc/{name}" for name in ("OpenCL", "vulkan", "glvnd", "egl", "services", "protocols")),
)
"""Files that libraries of the system read."""
_DEVICES = ("/dev/null", "/dev/full", "/dev/dri", "/dev/kfd")
_SHARED_MEMORY = "/dev/shm"
_NVIDIA = ("nvidia*", "nvidia-caps")
_WITH_LIBRARIES = ("_bz2", "_ctypes", "_hashlib", "_lzma", "_sqlite3", "_ssl", "zlib")
"""Modules of Python that use libraries outside of it."""

_in_force: list[AccessLimits] = []
"""Limits that this process, or one that forked it, has set."""


class _Ruleset(ctypes.Structure):
    _fields_ = [("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scopes", ctypes.c_uint64)]


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("rights", ctypes.c_uint64), ("descriptor", ctypes.c_int32)]


@dataclass(frozen=True)
class AccessLimits:
    """Files that a process may open, beside Python, the packages and the libraries of the system.

    A path that does not exist gives no right; folders include all that they contain.
    """

    read: tuple[Path, ...] | None = ()
    """Files and folders that it may read; None for all but devices, such as terminals of the user."""
    write: tuple[Path, ...] = ()
    """Files and folders that it may read and change."""
    may_connect: bool = False
    """True if it may use the network."""
    is_isolated: bool = False
    """True if it exchanges nothing with other processes: it has no shared memory and creates no sockets."""


@cache
def landlock_version() -> int:
    """Return the version of Landlock in this kernel; 0 if limits cannot be set here."""
    if sys.platform != "linux" or platform.machine() not in _MACHINES:
        return 0
    version = c_library().syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_GET_VERSION))
    return version if version >= _OLDEST else 0


def limit_access(limits: AccessLimits) -> bool:
    """Limit this thread, and all threads and processes that it starts afterwards; return False if the kernel cannot.

    Raises:
        OSError: The kernel refuses the limits.
    """
    version = landlock_version()
    if not version:
        return False
    handled = _Right(sum(right for right in _Right if _SINCE.get(right, 0) <= version))
    is_offline = version >= _NETWORK_VERSION and not limits.may_connect
    scopes = _SCOPES if version >= _SCOPE_VERSION else 0
    rules = _Ruleset(handled, _TCP if is_offline else 0, scopes)
    size = 24 if version >= _SCOPE_VERSION else 16 if version >= _NETWORK_VERSION else 8
    ruleset = _call(_CREATE_RULESET, ctypes.byref(rules), ctypes.c_size_t(size), ctypes.c_uint32(0))
    try:
        for path in (*map(Path, _SYSTEM), *python_places()):
            _allow(ruleset, path, _RUN & handled)
        for path in (*map(Path, _SETTINGS), *(_all_files() if limits.read is None else limits.read)):
            _allow(ruleset, path, _READ & handled)
        if limits.read is None:
            _allow(ruleset, Path("/"), _Right.READ_FOLDER)
        shared = () if limits.is_isolated else (_SHARED_MEMORY,)
        for path in (*map(Path, (*_DEVICES, *shared)), *(one for name in _NVIDIA for one in Path("/dev").glob(name))):
            _allow(ruleset, path, _WRITE & handled)
        for path in limits.write:
            _allow(ruleset, path, _WRITE & handled)
        if c_library().prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), "prctl")
        drop_capabilities()
        _call(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0))
        sockets = None if limits.may_connect else () if limits.is_isolated else _LOCAL_SOCKETS
        cuts = version >= _SINCE[_Right.TRUNCATE]
        refuse_system_calls(sockets=sockets, is_isolated=limits.is_isolated, may_truncate=cuts)
    finally:
        os.close(ruleset)
    _in_force.append(limits)
    return True


def is_limited() -> bool:
    """Return True if this process, or one that forked it, has limited its access."""
    return bool(_in_force)


@cache
def python_places() -> frozenset[Path]:
    """Return the folders of the interpreter, its libraries and packages, and Nimbus; a process finds them once."""
    texts = {sys.prefix, sys.exec_prefix, sys.base_prefix, os.path.dirname(os.path.realpath(sys.executable))}
    texts |= {place for place in sys.path if os.path.isabs(place)}
    texts |= set(filter(os.path.isabs, os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)))
    rooms = (room for folder in nimbus.__path__ for room in Path(folder).iterdir())
    places = {*map(Path, filter(None, texts)), *(room.resolve() for room in rooms if room.is_symlink())}
    return frozenset(places | set(_library_folders()))


def _all_files() -> Iterator[Path]:
    """Yield the entries of the root folder except that of the devices, and links, which could lead there."""
    yield from (path for path in Path("/").iterdir() if path != Path("/dev") and not path.is_symlink())


def _library_folders() -> Iterator[Path]:
    """Yield the folders of loaded libraries: an interpreter of Homebrew, Spack or EasyBuild has them anywhere."""
    for name in _WITH_LIBRARIES:
        with suppress(ImportError):
            importlib.import_module(name)
    with suppress(OSError):
        for line in Path("/proc/self/maps").read_text(errors="surrogateescape").splitlines():
            path = line.split(maxsplit=5)[-1]
            if path.startswith("/") and ".so" in path:
                yield Path(path).parent


def _allow(ruleset: int, path: Path, rights: _Right) -> None:
    with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            given = rights if path.is_dir() else rights & _OF_FILES
            if given:
                rule = ctypes.byref(_PathBeneath(given, descriptor))
                _call(_ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(_PATH_BENEATH), rule, ctypes.c_uint32(0))
        finally:
            os.close(descriptor)


def _call(number: int, *arguments: object) -> int:
    result = c_library().syscall(number, *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), "Landlock")
    return result
