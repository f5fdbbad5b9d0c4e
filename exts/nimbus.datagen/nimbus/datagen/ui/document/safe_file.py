"""Files that several people may edit: atomic reads and writes, one editor at a time."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.atomic import replacing
from nimbus.datagen.files.bounded import read_bytes


def read_content(path: Path) -> bytes | None:
    """Return the bytes of a file; None for a missing one.

    Raises:
        InputError: It cannot be read, or is not a regular file, such as a pipe, on which reading would wait.
    """
    return read_bytes(path) if path.exists() else None


def digest(content: bytes | None) -> str:
    """Return a hash of contents; empty for a missing file."""
    return "" if content is None else hashlib.sha256(content).hexdigest()


def decoded(content: bytes, path: Path) -> str:
    """Decode the text of a file.

    Raises:
        InputError: The content is not UTF-8.
    """
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise InputError(
            f"not a UTF-8 text: byte {error.start}", where=str(path), instead="save the file as UTF-8"
        ) from None


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Exclude other editors during a check and a write; the lock ends with its process.

    On a disk without locks other editors are not excluded, but their changes are still detected.
    """
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def replace_content(path: Path, content: bytes) -> None:
    """Write to a new file and rename it, so that readers and crashes see either the old or the new content."""
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
    path = path.resolve()  # the target of a link is replaced, and the link stays
    with replacing(path, durable=True, shared=True) as temporary:
        temporary.chmod(mode)  # set before the file has content that other users could read
        temporary.write_bytes(content)
