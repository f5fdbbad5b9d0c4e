"""Safe changes of files in folders that other users may have created.

A dataset may come from another user: its entries may be links to files of this user, and its ledger contains paths.
Files in datasets are created, moved and removed only by functions of this module; :mod:`.atomic` replaces them.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from nimbus.datagen.errors import InputError, quote_words
from nimbus.datagen.files.start_folder import start_folder

_MOVE = "move it elsewhere"
_BLOCK = 1 << 20
"""Memory for a file that is copied [bytes]."""
_LONGEST_NAME = 100
"""Longest name [characters]; file systems allow 255 bytes, and suffixes are appended."""


def is_own_name(name: str) -> bool:
    """Return True if a name from a file of a dataset is the path of a file below its folder, with slashes."""
    return "\0" not in name and "\\" not in name and not any(part in ("", ".", "..") for part in name.split("/"))


def own_path(folder: Path, name: str) -> Path:
    """Resolve a name from a file of a dataset, for writing or deleting.

    Args:
        folder: The dataset.
        name: Path below it, with slashes.

    Raises:
        InputError: The name is absolute, leads out of the folder, or passes through a link.
    """
    if not is_own_name(name):
        raise InputError(
            f"{name!a} is not a path in this folder", where=str(folder), instead="restore the dataset from a copy"
        )
    *folders, last = name.split("/")
    place = folder
    for part in folders:
        place /= part
        check_own(place)
    return place / last


def file_name(name: str) -> str:
    """Return a valid file name for a name from an asset, such as that of a link or mesh; most names are unchanged."""
    safe = re.sub(r"[^A-Za-z0-9_.-]", "_", name).lstrip(".")[:_LONGEST_NAME]
    return safe if safe == name else f"{safe}-{hashlib.sha256(name.encode(errors='replace')).hexdigest()[:8]}"


def check_own(path: Path) -> None:
    """Refuse a symbolic link where a dataset has a file or folder.

    Raises:
        InputError: The path is a symbolic link.
    """
    if path.is_symlink():
        raise InputError("this is a link, and writing to it would change another file", where=str(path), instead=_MOVE)


def default_folder(name: str) -> Path:
    """Return ``out/NAME`` where the command was started: the folder of an output for which the user has named none.

    Raises:
        InputError: It or ``out`` is a link, which may lead to files of this user: the folder around it may belong to
            another one.
    """
    here, folder = start_folder(), Path("out", name)
    for place in (folder.parent, folder):
        if (here / place).is_symlink():
            what = "this is a link, and an output follows links only if its folder is named"
            raise InputError(what, where=str(place), instead=f"name it, for example {quote_words('--out', folder)}")
    return here / folder


def part_folder(folder: Path, name: str) -> Path:
    """Return the folder of a part of an output, such as the dataset of a task of a job.

    Args:
        folder: Folder of the output, which may be a link if the user has named it.
        name: Name of the part.

    Raises:
        InputError: The part is a link, which may lead to files of this user: the folder may belong to another one.
    """
    place = folder / name
    check_own(place)
    return place


def make_subfolder(folder: Path) -> None:
    """Make a folder of a dataset, unless it exists.

    Raises:
        InputError: A file or a link has the name.
    """
    check_own(folder)
    try:
        folder.mkdir(exist_ok=True)
    except FileExistsError:
        raise InputError("this is a file, where a dataset has a folder", where=str(folder), instead=_MOVE) from None


def make_place(folder: Path, name: str) -> Path:
    """Resolve a name like :func:`own_path`, and make its parent folders.

    Args:
        folder: An existing folder.
        name: Path below it, with slashes.

    Raises:
        InputError: The name is absolute, leads out of the folder, or passes through a link or a file.
    """
    path = own_path(folder, name)
    for above in reversed(path.relative_to(folder).parents[:-1]):
        make_subfolder(folder / above)
    return path


def create_file(path: Path, *, append: bool = False, is_private: bool = False) -> int:
    """Create a file that does not exist; a link with the name counts as a file.

    Args:
        path: The file.
        append: True to append with every write.
        is_private: True for a file that only this user can open, from the beginning.

    Returns:
        Descriptor of the file, open for reading and writing.

    Raises:
        FileExistsError: The file exists.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
    return os.open(path, flags | (os.O_APPEND if append else 0), 0o600 if is_private else 0o666)


def open_shared(path: Path) -> int:
    """Open a file that several processes change in place, such as a lock file; it is created if missing.

    Returns:
        Descriptor of the file, open for reading and writing.

    Raises:
        InputError: The path is a link.
    """
    check_own(path)
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0), 0o644)


def write_new(path: Path, content: bytes) -> None:
    """Write a file that does not exist yet.

    Raises:
        FileExistsError: The path exists, as a file or a link.
    """
    with os.fdopen(create_file(path), "wb") as file:
        file.write(content)


def copy_new(source: Path, folder: Path, name: str, *, may_link: bool = False) -> None:
    """Copy a file of any folder into a new folder.

    Args:
        source: The file.
        folder: An existing folder.
        name: Path below it, with slashes; its parent folders are made.
        may_link: Make a hard link instead, if the file system can. A file of another user, or one that all may
            write, is copied.

    Raises:
        InputError: The name leads out of the folder, passes through a link or a file, or is taken.
    """
    target = make_place(folder, name)
    try:
        if may_link and _is_private(source):
            with suppress(OSError):
                link_file(source, target)
                return
        with source.open("rb") as content, os.fdopen(create_file(target), "wb") as copy:
            shutil.copyfileobj(content, copy, _BLOCK)
    except FileExistsError:
        instead = "restore the dataset from a copy"
        raise InputError(f"two files would be named {name!a}", where=str(folder), instead=instead) from None


def _is_private(path: Path) -> bool:
    """Return True if a file belongs to this user and not all users may write it."""
    state = path.lstat()
    return (not hasattr(os, "getuid") or state.st_uid == os.getuid()) and not state.st_mode & stat.S_IWOTH


def remove_file(path: Path | str) -> None:
    """Remove a file or a link, never the target of a link; do nothing if it does not exist."""
    with suppress(FileNotFoundError):
        os.unlink(path)


def remove_tree(path: Path) -> None:
    """Remove a file, or a folder with its content; links are removed and never followed."""
    try:
        shutil.rmtree(path)
    except FileNotFoundError:
        return
    except OSError:
        if not path.is_symlink() and path.is_dir():
            raise
        remove_file(path)


def move(source: Path, target: Path) -> None:
    """Rename a file or folder, replacing an existing file of that name."""
    os.replace(source, target)


def link_file(source: Path | str, target: Path | str) -> None:
    """Create a hard link to a file.

    Raises:
        FileExistsError: The name is taken.
    """
    os.link(source, target, follow_symlinks=False)


def has_links(folder: Path) -> bool:
    """Return True if there is a link in a folder or below it."""
    return folder.is_symlink() or any(entry.is_symlink() for entry in _entries(folder))


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    """Yield all files and folders below a folder; links are not followed, and unreadable folders are left out."""
    waiting = [str(folder)]
    while waiting:
        found: list[os.DirEntry[str]] = []
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            found += entries
        yield from found
        waiting += [entry.path for entry in found if entry.is_dir(follow_symlinks=False)]


def is_own(path: Path) -> bool:
    """Return True if a path belongs to this user or to the superuser; the superuser may use the files of all users."""
    return not hasattr(os, "getuid") or os.getuid() == 0 or path.stat().st_uid in (os.getuid(), 0)


def refuse_links(folder: Path) -> None:
    """Refuse to continue in a folder with links, through which files elsewhere would be changed, or with pipes.

    Raises:
        InputError: There is a link in the folder or below it, or anything else but files and folders.
    """
    entries = list(_entries(folder))
    if folder.is_symlink() or any(entry.is_symlink() for entry in entries):
        what = "the folder contains links, so continuing in it could change files elsewhere"
        raise InputError(what, where=str(folder), instead="replace each link by a copy of its target")
    for entry in entries:
        if not (entry.is_file() or entry.is_dir()) and os.path.lexists(entry.path):
            what = "is neither a file nor a folder, and opening it may never end"
            raise InputError(what, where=entry.path, instead="remove it")


def refuse_other_owner(folder: Path) -> None:
    """Refuse an existing folder of another user; its owner could change all that this process writes there.

    Raises:
        InputError: The folder belongs to another user.
    """
    if folder.exists() and not is_own(folder):
        raise InputError("it belongs to another user", where=str(folder), instead=_MOVE)
