"""Cache of generated assets between runs."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from nimbus.datagen.errors import InputError, StorageError
from nimbus.datagen.files.own_files import is_own
from nimbus.datagen.files.variables import variable_path

_LEAST = 1 << 20
"""Free space below which an error of a library during writing is attributed to a full disk [bytes]."""


GENERATED = frozenset(
    "assets catalogue checked figures light meshes mjcf objects reach robot_checks robots rooms temporary "
    "warp wheels".split()
)
"""Folders with generated files, which every process may read."""
PRIVATE = frozenset({"isaacsim", "own_tasks", "remote", "servers", "torch", "warp"})
"""Folders that only their user may enter. Code in ``isaacsim``, ``torch`` and ``warp`` is executed: with a umask of
002, its folders are writable for the group, whose members could replace the code. ``remote`` has copies from private
stores; what ``own_tasks`` records is trusted."""
COMPILED = {"torch": "TORCHINDUCTOR_CACHE_DIR", "warp": "WARP_CACHE_PATH"}
"""Folders of code that libraries compile and execute, each with the library's variable that names another one."""


def cache_folder(name: str) -> Path:
    """Return a writable folder for one type of generated files, which is created if missing.

    The folder is under ``NIMBUS_CACHE``, or under the user's cache folder.

    Args:
        name: Type of files, for example ``objects``.

    Raises:
        InputError: The path is relative, or the folder cannot be created or written, or other users can write there.
    """
    assert name in GENERATED | PRIVATE, f"'{name}' is in no list of this module"
    folder = _root() / name
    try:
        folder.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        if name in PRIVATE and not _keeps_entries(folder.parent):
            folder = _own_root() / name
        folder.mkdir(mode=0o700 if name in PRIVATE else 0o755, parents=True, exist_ok=True)
        found = folder.stat()
        is_mine = hasattr(os, "getuid") and found.st_uid == os.getuid()
        if name in PRIVATE and is_mine and not found.st_mode & stat.S_IWOTH:
            folder.chmod(0o700)
    except OSError as error:
        raise _unwritable(folder, error.strerror or str(error)) from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise _unwritable(folder, "not writable")
    for place, holds_files in ((folder, True), (folder.parent, False)):
        if why := _why_not_own(place, holds_files=holds_files):
            raise _unwritable(place, why)
    return folder


def _keeps_entries(root: Path) -> bool:
    """Return True if no other user can rename this user's folders in the root of a cache; close it if possible."""
    found = root.stat()
    if not found.st_mode & stat.S_IWGRP or found.st_mode & stat.S_ISVTX:
        return True
    try:
        root.chmod(stat.S_IMODE(found.st_mode) | stat.S_ISVTX)  # members of the group can still add entries
    except OSError:  # it is the folder of another member
        return False
    return True


def code_folder(name: str) -> Path:
    """Return the folder of a library's compiled code: that of its variable, or one of the cache.

    Args:
        name: A folder of :data:`COMPILED`.

    Raises:
        InputError: The variable holds a relative path, the folder cannot be used, or other users can write there.
    """
    named = os.environ.get(COMPILED[name])
    return named_folder(COMPILED[name], named) if named else cache_folder(name)


def _root() -> Path:
    root = os.environ.get("NIMBUS_CACHE")
    return variable_path("NIMBUS_CACHE", root) if root else _own_root()


def _own_root() -> Path:
    import platformdirs

    return variable_path("XDG_CACHE_HOME", platformdirs.user_cache_dir("nimbus", appauthor=False))


def shared_folders() -> list[Path]:
    """Return the folders of generated files in the cache that are not secret; those that are missing are created."""
    return [cache_folder(name) for name in sorted(GENERATED)]


def named_folder(variable: str, text: str) -> Path:
    """Return the folder in an environment variable whose content is executed; it is created if missing.

    Args:
        variable: Name of the variable.
        text: Its value.

    Raises:
        InputError: The path is relative, the folder cannot be created, or other users can write there.
    """
    folder = variable_path(variable, text)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if is_own(folder) and not folder.stat().st_mode & stat.S_IWOTH:
            with suppress(PermissionError):
                folder.chmod(stat.S_IMODE(folder.stat().st_mode) & ~stat.S_IWGRP)
        open_to_group = next((place for place in (folder, folder.parent) if _is_open_to_group(place, folder)), None)
    except OSError as error:
        raise _unwritable(folder, error.strerror or str(error), variable=variable) from None
    if open_to_group:
        raise _unwritable(open_to_group, "its group can write there", variable=variable)
    if why := _why_not_own(folder, holds_files=True) or _why_not_own(folder.parent, holds_files=False):
        raise _unwritable(folder, why, variable=variable)
    return folder


def _is_open_to_group(place: Path, folder: Path) -> bool:
    """Return True if another member of a group can change files in a folder, or replace a folder in its parent."""
    found = place.stat()
    if not found.st_mode & stat.S_IWGRP or (place != folder and found.st_mode & stat.S_ISVTX):
        return False
    import grp
    import pwd

    try:  # many systems give each user a group of their own
        return grp.getgrgid(found.st_gid).gr_name != pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return True


def _why_not_own(folder: Path, *, holds_files: bool) -> str:
    """Return the reason why other users could put files into a folder, which would be trusted; empty for none.

    A superuser may use folders of other users, which is common in containers. In a folder with the sticky bit, others
    can add files but cannot change this user's. That is safe for a parent folder, because each of its subfolders has an
    owner.
    """
    if not hasattr(os, "getuid"):
        return ""
    found = folder.stat()
    if not is_own(folder):
        return "it belongs to another user"
    is_sticky = bool(found.st_mode & stat.S_ISVTX) and not holds_files
    return "all users can write there" if found.st_mode & stat.S_IWOTH and not is_sticky else ""


def _unwritable(folder: Path, why: str, *, variable: str = "NIMBUS_CACHE") -> InputError:
    instead = f"set {variable} to a folder that you may write"
    return InputError(f"the cache folder cannot be used ({why})", where=str(folder), instead=instead)


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Convert any library's error about a full disk to one line.

    Args:
        folder: Folder of the cache.

    Raises:
        StorageError: The disk of the folder, or of temporary files, is full.
    """
    try:
        yield
    except StorageError:
        raise
    except Exception as error:  # libraries raise various errors for a file that was cut short
        folders = (folder, *_temporary()) if _is_full(error) else (folder,)
        if (full := full_folder(error, folders)) is None:
            raise
        raise full_disk(full) from error


def full_folder(error: Exception, folders: Sequence[Path]) -> Path | None:
    """Return the first folder on a full disk if this may be the cause of an error, else None.

    Args:
        error: The error; if it states that a disk is full, but no disk seems to be, for example because of a quota, the
            first folder is returned.
        folders: Folders into which was written.
    """
    full = (folder for folder in folders if folder.exists() and shutil.disk_usage(folder).free < _LEAST)
    return next(full, folders[0] if _is_full(error) else None)


def _temporary() -> list[Path]:
    """Return the folder of temporary files; none if Python finds no folder in which it can write."""
    try:
        return [Path(tempfile.gettempdir())]
    except FileNotFoundError:
        return []


def _is_full(error: Exception) -> bool:
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


def full_disk(folder: Path) -> StorageError:
    """Return the error for a folder whose disk is full, with the variable for another folder if there is one."""
    name, variable = "folder", ""
    if folder.is_relative_to(_root()):
        name, variable = "cache folder", "NIMBUS_CACHE"
    elif found := [temporary for temporary in _temporary() if folder.is_relative_to(temporary)]:
        folder, name, variable = found[0], "folder of temporary files", "TMPDIR"
    instead = "free space there" + (f", or set {variable} to a folder on another disk" if variable else "")
    return StorageError(f"the disk of the {name} is full", where=str(folder), instead=instead)
