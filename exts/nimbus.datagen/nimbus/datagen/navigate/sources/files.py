"""Scene files named by a task: expansion of patterns, and content hashes."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.bounded import check_regular

MOST_FILES = 10_000
"""Largest number of files named by one task."""


def find_files(patterns: tuple[str, ...]) -> tuple[Path, ...]:
    """Find the files of paths and of patterns such as ``scans/*.glb``, sorted by name.

    Raises:
        InputError: A pattern matches no file, or more than 10,000.
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
            raise InputError(f"no file '{pattern}'", where="scene", instead="write a path relative to the task file")
        found.update(dict.fromkeys(here))
        if len(found) > MOST_FILES:
            raise InputError(
                f"'{pattern}' brings the number of files above {MOST_FILES}", where="scene", instead="name fewer"
            )
    return tuple(found)


def file_hash(path: Path) -> str:
    """Hash a file's content; the hash is kept until the file changes.

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
    """Return a path or pattern relative to the working directory."""
    path = Path(pattern).expanduser()
    return str(path if path.is_absolute() else folder / path)
