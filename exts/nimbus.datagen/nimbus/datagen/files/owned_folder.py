"""Folders that belong to one process; a later process removes those that a killed process has left."""

from __future__ import annotations

import os
import tempfile
import time
import weakref
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.folder_lock import FolderLock, FolderTakenError, lock_folder
from nimbus.datagen.files.own_files import remove_tree

_YOUNG = 60.0
"""Age below which a folder without an owner is kept [s], because its owner may be about to lock it."""

_TRIES, _PAUSE = 20, 0.1
"""Number of tries to own a folder, and pause between two [s]."""


class OwnedFolder:
    """Folder that belongs to this process until its end, by a kernel lock.

    Args:
        path: The folder, which is created if missing.

    Raises:
        FolderTakenError: Another process owns it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        for left in reversed(range(_TRIES)):
            path.mkdir(parents=True, exist_ok=True, mode=0o700)
            try:
                self.lock: FolderLock = lock_folder(path)
            except (FolderTakenError, FileNotFoundError):  # another process may be removing it as a stale folder
                if not left:
                    raise
                time.sleep(_PAUSE)
                continue
            if path.exists():
                break
            self.lock.release()

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.remove()

    def remove(self) -> None:
        """Remove the folder; files that cannot be removed stay."""
        with suppress(OSError):
            remove_tree(self.path)
        self.lock.release()


def make_owned(prefix: str) -> OwnedFolder:
    """Make a temporary folder, after removing those of the same prefix whose owner has ended.

    The folder is removed with the object or at the end of the process; only a killed process leaves it behind.

    Args:
        prefix: Beginning of its name, used for owned folders only.
    """
    place = Path(tempfile.gettempdir())
    remove_stale(place.glob(f"{prefix}*"))
    made = OwnedFolder(Path(tempfile.mkdtemp(prefix=prefix)))
    weakref.finalize(made, _remove_own, made.path, made.lock, os.getpid())
    return made


def _remove_own(path: Path, lock: FolderLock, owner: int) -> None:
    if os.getpid() == owner:  # a forked process must not remove it
        with suppress(OSError):
            remove_tree(path)
        lock.release()


def remove_stale(folders: Iterable[Path]) -> list[Path]:
    """Remove folders of this user whose owner has ended; return them.

    Args:
        folders: Folders that were created as :class:`OwnedFolder`.
    """
    removed: list[Path] = []
    for folder in folders:
        with suppress(OSError, InputError):
            found = folder.lstat()
            if found.st_uid != os.getuid() or folder.is_symlink() or not folder.is_dir():
                continue
            if time.time() - found.st_mtime < _YOUNG:
                continue
            lock = lock_folder(folder)  # raises if its owner is alive
            try:
                remove_tree(folder)
            finally:
                lock.release()
            removed.append(folder)
    return removed
