"""Atomic writes: a file appears whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def replacing(path: Path, *, durable: bool, shared: bool) -> Iterator[Path]:
    """Yield the name of a temporary file, which takes the place of ``path`` at the end, or is removed after an error.

    Args:
        path: The file; a reader sees the old or the new one.
        durable: Sync the content first: after a power failure, too, the old or the new one is there.
        shared: Several processes may write the file at the same time: the temporary name is their own. Otherwise it is
            ``path`` with ``.tmp``, so that what a killed process left is overwritten by the next one.
    """
    token = f".{os.getpid()}-{secrets.token_hex(4)}" if shared else ""
    temporary = path.with_name(f".{path.name}{token}.tmp" if shared else f"{path.name}.tmp")
    try:
        yield temporary
        if durable:
            sync_file(temporary)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def write_atomic(path: Path, content: bytes | str, *, durable: bool, shared: bool) -> None:
    """Replace a file's content, text as UTF-8; see :func:`replacing`."""
    with replacing(path, durable=durable, shared=shared) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


def sync_file(path: Path) -> None:
    """Put a file's content on the disk."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Put a folder's entries on the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
