"""Atomic writes: a file appears whole or not at all."""

from __future__ import annotations

import errno
import glob
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from nimbus.datagen.files.own_files import create_file, remove_file

_FOR_FILES_ALONE = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EBADF)
"""Errors of a disk that can sync files but not folders."""


@contextmanager
def replacing(path: Path, *, durable: bool, shared: bool, is_private: bool = False) -> Iterator[Path]:
    """Yield the path of a new, empty file, which replaces ``path`` at the end, or is removed after an error.

    The name is unpredictable and the file is created by this call, so that no existing link in the folder is followed.

    Args:
        path: The file; a reader sees either the old or the new content. A link is replaced itself, not its target.
        durable: Sync the content first, so that the old or the new content also survives a power failure.
        shared: Several processes may write the file at the same time. Otherwise leftovers of killed processes are
            removed.
        is_private: Let only this user open the file. One whose mode changes later may have been opened before.
    """
    if not shared:
        for left in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
            remove_file(left)
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(8)}.tmp")
    os.close(create_file(temporary, is_private=is_private))
    try:
        yield temporary
        if durable:
            sync_file(temporary)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            remove_file(temporary)
        raise


def write_atomic(path: Path, content: bytes | str, *, durable: bool, shared: bool) -> None:
    """Replace a file's content, text as UTF-8; see :func:`replacing`."""
    with replacing(path, durable=durable, shared=shared) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


def sync_file(path: Path) -> None:
    """Sync a file's content to the disk."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Sync a folder's entries to the disk; if the disk cannot sync single folders, everything is synced."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _FOR_FILES_ALONE:
            raise
        os.sync()
    finally:
        os.close(descriptor)
