"""One-line errors of the disk, and atomic replacement of text files."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nimbus.datagen.errors import StorageError
from nimbus.datagen.files.atomic import write_atomic


def storage_error(error: OSError, path: Path) -> StorageError:
    """Return the one-line error for a full or missing disk."""
    reason = os.strerror(error.errno) if error.errno else str(error)
    is_closed = error.errno in (errno.EROFS, errno.EACCES, errno.EPERM)
    mend = "make it writable" if is_closed else "make room or choose another --out"
    instead = f"{mend}, then run the same command again; stored episodes are kept"
    return StorageError(f"cannot write: {reason}", where=str(path), instead=instead)


@contextmanager
def disk(path: Path) -> Iterator[None]:
    """Convert errors of the disk to :class:`StorageError`, except for an existing file name, which is a bug."""
    try:
        yield
    except FileExistsError:
        raise
    except OSError as error:
        raise storage_error(error, path) from error


def replace_text(path: Path, text: str, *, durable: bool = True) -> None:
    """Replace a small text file atomically, so that a reader sees either the old or the new text.

    Raises:
        StorageError: The disk is full; the old file stays.
    """
    with disk(path):
        write_atomic(path, text, durable=durable, shared=False)
