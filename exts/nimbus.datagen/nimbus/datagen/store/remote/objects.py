"""Objects of a store: size and version, errors, and the file into which one is written."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from nimbus.datagen.errors import InputError, StoreAwayError
from nimbus.datagen.files.own_files import create_file, remove_file
from nimbus.datagen.store.publish import disk

LARGEST_OBJECT = 1 << 36
"""Largest object that is downloaded [bytes]; shards have a few GB."""


class MissingObjectError(InputError):
    """Raised when an object does not exist."""


class MissingBucketError(InputError):
    """Raised when a bucket does not exist and the store's answer names it; an answer to HEAD does not."""


@dataclass(frozen=True, kw_only=True)
class ObjectStat:
    """Size and version of an object."""

    byte_count: int
    etag: str
    """Version, which changes with the content."""


def check_size(byte_count: int, limit: int, *, where: str) -> None:
    """Refuse an object that is larger than a limit [bytes] with an :class:`InputError`."""
    if byte_count > limit:
        what = f"{byte_count} bytes; the limit is {limit}"
        raise InputError(what, where=where, instead="restore it from a copy")


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
