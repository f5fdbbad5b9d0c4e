"""Objects of a store: size and version, and errors."""

from __future__ import annotations

from dataclasses import dataclass

from nimbus.datagen.errors import InputError

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
