"""A folder with one writer."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from pathlib import Path

from nimbus.datagen.errors import InputError

OTHER_OUT = "choose another --out"


def quarantine_file(path: Path, folder: Path) -> Path:
    """Move a file into a folder, over no other one."""
    make_subfolder(folder)
    names = (folder / f"{path.stem}{mark}{path.suffix}" for mark in ("", *(f"-{count}" for count in range(1, 10**6))))
    target = next(name for name in names if not name.exists())
    path.rename(target)
    return target


def make_subfolder(folder: Path) -> None:
    """Make a folder of a dataset, unless it is there.

    Raises:
        InputError: Somebody's file has its name.
    """
    try:
        folder.mkdir(exist_ok=True)
    except FileExistsError:
        what = "this is a file, where a dataset has a folder"
        raise InputError(what, where=str(folder), instead="move it elsewhere") from None


def check_writable(folder: Path) -> None:
    """Refuse a folder that :func:`open_folder` would refuse, as far as that shows without making anything.

    Raises:
        InputError: It is a file, or cannot be written.
    """
    try:
        if folder.exists() and not folder.is_dir():
            raise InputError("this is a file", where=str(folder), instead=f"{OTHER_OUT}, a folder")
        there = next(path for path in (folder, *folder.parents) if path.exists())
    except OSError as error:
        raise _unwritable(folder, error) from None
    if not there.is_dir():
        raise _unwritable(folder, OSError(errno.ENOTDIR, ""))
    if not os.access(there, os.W_OK | os.X_OK):
        is_mounted_so = os.statvfs(there).f_flag & os.ST_RDONLY
        raise _unwritable(folder, OSError(errno.EROFS if is_mounted_so else errno.EACCES, ""))


def open_folder(folder: Path, *, probe: str) -> int:
    """Make a folder and lock it; only its one writer then tries whether it can be written.

    Args:
        folder: The folder.
        probe: Name of the file to try with.

    Returns:
        A descriptor that holds the lock until it is closed.

    Raises:
        InputError: It is a file, cannot be written, or another run writes into it.
    """
    check_writable(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise _unwritable(folder, error) from None
    try:
        _lock(folder, lock)
        _try_to_write(folder / probe)
    except BaseException:
        os.close(lock)
        raise
    return lock


def is_in_use(folder: Path) -> bool:
    """Whether a run writes into a folder now."""
    if sys.platform == "win32":
        return False
    import fcntl

    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def _lock(folder: Path, lock: int) -> None:
    if sys.platform != "win32":
        import fcntl

        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            line = "wait for it, or choose another --out"
            raise InputError("another run writes into this folder", where=str(folder), instead=line) from None


def _try_to_write(probe: Path) -> None:
    try:
        probe.touch()
        probe.unlink()
    except OSError as error:
        with suppress(OSError):
            probe.unlink()
        raise _unwritable(probe.parent, error) from None


def _unwritable(folder: Path, error: OSError) -> InputError:
    reason = os.strerror(error.errno or 0)
    return InputError(f"cannot write here: {reason}", where=str(folder), instead=OTHER_OUT)
