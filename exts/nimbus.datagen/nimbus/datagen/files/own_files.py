"""Changes of files in folders that other users may have created.

A dataset may come from another user: its entries may be links to files of this one, and its ledger names paths. All of
the project's creation, moves and removal of files in a dataset go through here; :mod:`.atomic` replaces them.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from contextlib import suppress
from pathlib import Path

from nimbus.datagen.errors import InputError

_MOVE = "move it elsewhere"
_LONGEST_NAME = 100
"""Longest name [characters]: file systems allow 255 bytes, and suffixes follow."""


def own_path(folder: Path, name: str) -> Path:
    """Resolve a name that a dataset's own file gives, for writing and deleting.

    Args:
        folder: The dataset.
        name: Path below it, with slashes.

    Raises:
        InputError: The name is absolute, leads out of the folder, or passes through a link.
    """
    parts = name.split("/")
    if not name or "\0" in name or "\\" in name or any(part in ("", ".", "..") for part in parts):
        raise InputError(f"{name!a} is not a path in it", where=str(folder), instead="restore the dataset from a copy")
    place = folder
    for part in parts[:-1]:
        place /= part
        check_own(place)
    return place / parts[-1]


def file_name(name: str) -> str:
    """Make a file name of a name that an asset gives, such as that of a link or mesh; most stay as they are."""
    safe = re.sub(r"[^A-Za-z0-9_.-]", "_", name).lstrip(".")[:_LONGEST_NAME]
    return safe if safe == name else f"{safe}-{hashlib.sha256(name.encode(errors='replace')).hexdigest()[:8]}"


def check_own(path: Path) -> None:
    """Refuse a link where a dataset has a file or folder of its own.

    Raises:
        InputError: The path is a symbolic link.
    """
    if path.is_symlink():
        raise InputError("this is a link, and writing to it would change another file", where=str(path), instead=_MOVE)


def make_subfolder(folder: Path) -> None:
    """Make a folder of a dataset, unless it is there.

    Raises:
        InputError: A file or a link has its name.
    """
    check_own(folder)
    try:
        folder.mkdir(exist_ok=True)
    except FileExistsError:
        raise InputError("this is a file, where a dataset has a folder", where=str(folder), instead=_MOVE) from None


def make_place(folder: Path, name: str) -> Path:
    """Resolve a name as :func:`own_path` does, and make the folders that it lies in.

    Args:
        folder: A folder that is there.
        name: Path below it, with slashes.

    Raises:
        InputError: The name is absolute, leads out of the folder, or passes through a link or a file.
    """
    path = own_path(folder, name)
    for above in reversed(path.relative_to(folder).parents[:-1]):
        make_subfolder(folder / above)
    return path


def create_file(path: Path, *, append: bool = False) -> int:
    """Create a file that is not there; a link with its name counts as a file.

    Args:
        path: The file.
        append: Every write goes to the end.

    Returns:
        Its descriptor, open to read and write.

    Raises:
        FileExistsError: The file exists, and ``append`` is false.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
    return os.open(path, flags | (os.O_APPEND if append else 0), 0o666)


def open_shared(path: Path) -> int:
    """Open a file that several processes change in place, such as a lock; it is created when there is none.

    Returns:
        Its descriptor, open to read and write.

    Raises:
        InputError: The path is a link.
    """
    check_own(path)
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0), 0o644)


def write_new(path: Path, content: bytes) -> None:
    """Write a file that is not there.

    Raises:
        FileExistsError: The path exists, as a file or a link.
    """
    with os.fdopen(create_file(path), "wb") as file:
        file.write(content)


def remove_file(path: Path | str) -> None:
    """Remove a file or a link, never a link's target; do nothing when there is none."""
    with suppress(FileNotFoundError):
        os.unlink(path)


def remove_tree(path: Path) -> None:
    """Remove a file, or a folder with all that is in it; links are removed, never followed."""
    try:
        shutil.rmtree(path)
    except FileNotFoundError:
        return
    except OSError:
        if not path.is_symlink() and path.is_dir():
            raise
        remove_file(path)


def move(source: Path, target: Path) -> None:
    """Give a file or folder another name, in the place of a file that has it."""
    os.replace(source, target)


def link_file(source: Path | str, target: Path | str) -> None:
    """Give a file a second name.

    Raises:
        FileExistsError: Something has that name.
    """
    os.link(source, target, follow_symlinks=False)


def has_links(folder: Path) -> bool:
    """Look for links in a folder and below it."""
    return folder.is_symlink() or any(
        os.path.islink(os.path.join(place, name))
        for place, folders, names in os.walk(folder)
        for name in (*folders, *names)
    )
