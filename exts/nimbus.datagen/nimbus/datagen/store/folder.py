"""Dataset folders on disk: creation, checks of the disk, and moves that never overwrite."""

from __future__ import annotations

import errno
import os
import sys
import tempfile
from pathlib import Path

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.folder_lock import WITHOUT, FolderLock, lock_folder
from nimbus.datagen.files.own_files import link_file, make_subfolder, move, remove_file

OTHER_OUT = "choose another --out"


def quarantine_file(path: Path, folder: Path) -> Path:
    """Move a file into a folder without overwriting."""
    make_subfolder(folder)
    names = (folder / f"{path.stem}{mark}{path.suffix}" for mark in ("", *(f"-{count}" for count in range(1, 10**6))))
    target = next(name for name in names if not os.path.lexists(name))
    move(path, target)
    return target


def check_writable(folder: Path) -> None:
    """Refuse a folder that :func:`open_folder` would refuse, as far as this can be checked without creating anything.

    Raises:
        InputError: The folder is a file, or cannot be written.
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


def open_folder(folder: Path) -> FolderLock:
    """Create and lock a folder, then check that it can be written.

    Args:
        folder: The folder.

    Returns:
        The lock, held until released.

    Raises:
        InputError: The folder is a file, cannot be written, is on a disk without file locks, or is in use by another
            run.
    """
    check_writable(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = lock_folder(folder)
    except OSError as error:
        raise _unwritable(folder, error) from None
    try:
        _try_to_write(folder)
        check_disk(folder)
    except BaseException:
        lock.release()
        raise
    return lock


def check_disk(folder: Path) -> None:
    """Refuse a disk without byte-range locks, which the ledger needs.

    Raises:
        InputError: The disk has no such locks.
    """
    if sys.platform == "win32":
        return
    import fcntl

    try:
        with tempfile.TemporaryFile(dir=folder) as probe:
            # A lock is tried, because file systems and mount options do not report whether they support them.
            fcntl.lockf(probe, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in WITHOUT:
            return  # for example a full disk, which the first write reports
        what = f"this disk has no file locks, which the ledger needs ({os.strerror(error.errno or 0)})"
        instead = "choose another --out on a local disk, and copy the dataset when it is complete"
        raise InputError(what, where=str(folder), instead=instead) from None


def can_link(folder: Path) -> bool:
    """Return True if the disk supports hard links; FAT and some network mounts do not."""
    try:
        with tempfile.NamedTemporaryFile(prefix=".probe.", suffix=".tmp", dir=folder) as probe:
            link_file(probe.name, second := f"{probe.name}.link")
            remove_file(second)
    except OSError as error:
        return error.errno not in (errno.EPERM, errno.EMLINK, *WITHOUT)
    return True


def _try_to_write(folder: Path) -> None:
    try:
        descriptor, probe = tempfile.mkstemp(prefix=".probe.", suffix=".tmp", dir=folder)
        os.close(descriptor)
        remove_file(probe)
    except OSError as error:
        raise _unwritable(folder, error) from None


def _unwritable(folder: Path, error: OSError) -> InputError:
    reason = os.strerror(error.errno or 0)
    return InputError(f"cannot write here: {reason}", where=str(folder), instead=OTHER_OUT)
