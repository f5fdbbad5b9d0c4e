"""Errors of the disk in one line, and text files that are replaced at once."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nimbus.datagen.errors import StorageError
from nimbus.datagen.files.atomic import write_atomic


def storage_error(error: OSError, path: Path) -> StorageError:
    """The one line for a disk that is full or went away."""
    reason = os.strerror(error.errno) if error.errno else str(error)
    is_closed = error.errno in (errno.EROFS, errno.EACCES, errno.EPERM)
    mend = "make it writable" if is_closed else "make room or choose another --out"
    instead = f"{mend}, then run the same command again: what is stored stays"
    return StorageError(f"cannot write: {reason}", where=str(path), instead=instead)


@contextmanager
def disk(path: Path) -> Iterator[None]:
    """Turn a disk's errors into one line; a name that is taken stays the bug that it is."""
    try:
        yield
    except FileExistsError:
        raise
    except OSError as error:
        raise storage_error(error, path) from error


def replace_text(path: Path, text: str, *, durable: bool = True) -> None:
    """Replace a small text file at once; a reader sees the old or the new one.

    Raises:
        StorageError: The disk is full; the old file stays, and nothing new.
    """
    with disk(path):
        write_atomic(path, text, durable=durable, shared=False)
