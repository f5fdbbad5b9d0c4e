"""Scene files as paths in a task: which there are, and the hash of each."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.bounded import check_regular

MOST_FILES = 10_000
"""Files that one task names at most."""


def find_files(patterns: tuple[str, ...]) -> tuple[Path, ...]:
    """Find the files of paths and of patterns such as ``scans/*.glb``, sorted by name.

    Raises:
        InputError: One finds nothing, or more than 10,000.
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
    """Hash of a file's content, read once while it stays as it is.

    Raises:
        InputError: It cannot be read.
    """
    check_regular(path)
    state = path.stat()
    return _hash(path, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=4096)
def _hash(path: Path, changed: int, size: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def seen_from(folder: Path, pattern: str) -> str:
    """Return a path or pattern as it is seen from the working directory."""
    path = Path(pattern).expanduser()
    return str(path if path.is_absolute() else folder / path)
