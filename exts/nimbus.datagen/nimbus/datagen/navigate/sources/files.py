"""Scene files of a task: expansion of file patterns, and content hashes."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.bounded import check_regular

MOST_FILES = 10_000
"""Largest number of scene files of one task."""


def find_files(patterns: tuple[str, ...]) -> tuple[Path, ...]:
    """Return the files that match paths and patterns, such as ``scans/*.glb``; the matches of a pattern are sorted.

    Raises:
        InputError: A pattern matches no file, or there are more than :data:`MOST_FILES` files.
    """
    found: dict[Path, None] = {}
    for pattern in patterns:
        path = Path(pattern).expanduser()
        if not set("*?[") & set(pattern):
            here = [path]
        else:
            root = Path(path.anchor) if path.is_absolute() else Path()
            here = sorted(root.glob(str(path.relative_to(root))))
        if not here or not all(one.exists() for one in here):
            raise InputError(
                f"there is no file '{pattern}'", where="scene", instead="write a path relative to the task file"
            )
        found.update(dict.fromkeys(here))
        if len(found) > MOST_FILES:
            raise InputError(
                f"with '{pattern}', there are more than {MOST_FILES} files", where="scene", instead="list fewer files"
            )
    return tuple(found)


def file_hash(path: Path) -> str:
    """Return the hash of a file's content, cached until the file changes.

    Raises:
        InputError: The file cannot be read.
    """
    check_regular(path)
    state = path.stat()
    return _hash(path, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=4096)
def _hash(path: Path, changed: int, size: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def seen_from(folder: Path, pattern: str) -> str:
    """Return a path or pattern relative to the working directory, given one relative to ``folder``."""
    path = Path(pattern).expanduser()
    return str(path if path.is_absolute() else folder / path)
