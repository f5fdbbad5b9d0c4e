"""Lock of a folder for one writer: a kernel lock, or a lock file on disks without kernel locks (some network mounts).

The kernel releases its lock when the process ends. A lock file names its holder by machine, process id and start time,
so that a dead holder on the same machine is detected; a holder on another machine cannot be checked.
"""

from __future__ import annotations

import errno
import os
import secrets
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.bounded import read_text
from nimbus.datagen.files.codec import from_json, to_json
from nimbus.datagen.files.own_files import move, remove_file, write_new

LOCK_NAME = ".nimbus.lock"
WITHOUT = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL)
"""Errors of a disk without kernel locks, as opposed to those of a lock that is taken."""
_BYTES = 4096
_WAIT = "wait for it, or choose another --out"


class FolderTakenError(InputError):
    """Raised for a folder whose lock another process holds."""


@dataclass(frozen=True, kw_only=True)
class Holder:
    """The process that holds a lock."""

    machine: str
    """Boot id of the machine, which changes with every boot."""
    pid: int
    began: str
    """Start time of the process in kernel ticks, because process ids are reused."""

    @classmethod
    def this_process(cls) -> Holder:
        """Describe the calling process."""
        return cls(machine=_machine(), pid=os.getpid(), began=_began(os.getpid()))

    @property
    def is_alive(self) -> bool:
        """Return True if the process runs on this machine; False for any process on another machine."""
        return self.machine == _machine() and _began(self.pid) == self.began


class FolderLock:
    """A lock that is held until :meth:`release`.

    Args:
        descriptor: Descriptor of the folder, which carries the kernel's lock where available.
        file: Lock file on a disk without kernel locks.
    """

    def __init__(self, descriptor: int, file: Path | None = None) -> None:
        self._descriptor, self._file = descriptor, file

    def release(self) -> None:
        """Release the lock; repeated calls do nothing."""
        if self._file:
            with suppress(OSError):
                remove_file(self._file)
            self._file = None
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def lock_folder(folder: Path) -> FolderLock:
    """Lock a folder for this process.

    Raises:
        FolderTakenError: Another process holds the lock.
        InputError: The lock was taken on a machine that cannot be checked, or the lock file is invalid.
        OSError: The folder cannot be opened.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if _flock(descriptor, folder):
            return FolderLock(descriptor)
        return FolderLock(descriptor, _lock_file(folder))
    except BaseException:
        os.close(descriptor)
        raise


def is_locked(folder: Path) -> bool:
    """Return True if another process holds the lock of a folder; takes the lock for a moment."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if _flock(descriptor, folder, shared=True):
                return False
        finally:
            os.close(descriptor)
        holder = _holder(folder / LOCK_NAME)
    except (InputError, OSError):
        return True
    return holder is not None and holder.is_alive


def _flock(descriptor: int, folder: Path, *, shared: bool = False) -> bool:
    """Take the kernel lock; return False if the disk has no such locks."""
    if sys.platform == "win32":
        return True
    import fcntl

    try:
        # flock instead of lockf: the lock belongs to the open descriptor, so that closing another descriptor of the
        # same file does not release it.
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in WITHOUT:
            return False
        raise _taken(folder) from None
    return True


def _taken(folder: Path) -> FolderTakenError:
    return FolderTakenError("another run writes into this folder", where=str(folder), instead=_WAIT)


def _lock_file(folder: Path) -> Path:
    """Create the lock file, after removing that of a dead process."""
    path = folder / LOCK_NAME
    if (holder := _holder(path)) is not None:
        if holder.machine != _machine():
            what = f"process {holder.pid} locked this folder, on another machine or before this machine restarted"
            raise InputError(what, where=str(path), instead="delete this file when that process has ended")
        if holder.is_alive:
            raise _taken(folder)
        _put_aside(path, holder)
    try:
        write_new(path, to_json(Holder.this_process()).encode())
    except FileExistsError:  # another process was faster
        raise _taken(folder) from None
    return path


def _put_aside(path: Path, dead: Holder) -> None:
    """Remove the lock file of a dead process, but not a new one that another process has created meanwhile."""
    # Two processes may find the same dead holder. Only one of them succeeds in renaming; the check afterwards detects
    # a new lock file that was renamed by mistake.
    aside = path.with_name(f"{LOCK_NAME}.{secrets.token_hex(8)}")
    with suppress(FileNotFoundError):
        move(path, aside)
        if _holder(aside) != dead:
            move(aside, path)
            raise _taken(path.parent)
        remove_file(aside)


def _holder(path: Path) -> Holder | None:
    """Read the holder from a lock file; None without a file.

    Raises:
        InputError: The file is not a lock file, or is being written.
    """
    if not os.path.lexists(path):
        return None
    try:
        return from_json(Holder, read_text(path, limit=_BYTES, follow=False))
    except ValueError:
        instead = "delete this file when no run writes into this folder"
        raise InputError("not a lock file of Nimbus", where=str(path), instead=instead) from None


def _machine() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        import platform

        return platform.node()


def _began(pid: int) -> str:
    """Return the start time of a process; empty when there is none."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return ""
    # The name may contain spaces and parentheses, so fields are counted after it: state, and start time (field 22 of
    # proc(5)). A zombie no longer holds the lock.
    return "" if fields[0] == "Z" else fields[19]
