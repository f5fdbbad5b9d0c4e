"""One-line errors of the disk, atomic replacement of text files, and files with objects of a store."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from nimbus.datagen.errors import StorageError, StoreAwayError
from nimbus.datagen.files.atomic import write_atomic
from nimbus.datagen.files.own_files import create_file, remove_file


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


def write_object(path: Path, blocks: Iterable[bytes], byte_count: int, *, where: str) -> None:
    """Write an object to a new file, replacing an existing one; a link is replaced, never followed.

    Args:
        path: The file; it is removed after an error.
        blocks: Content; no more of it is read than one block beyond the size.
        byte_count: Declared size [bytes].
        where: Address of the object, for errors.

    Raises:
        StoreAwayError: The content has another size.
        StorageError: The disk is full.
    """
    written = 0
    try:
        with disk(path):
            remove_file(path)
            with os.fdopen(create_file(path), "wb") as file:
                for block in blocks:
                    written += file.write(block)
                    if written > byte_count:
                        break
        if written != byte_count:
            raise StoreAwayError(f"returned {written} of {byte_count} bytes", where=where)
    except BaseException:
        remove_file(path)
        raise
