"""Objects of a store: size and version, and errors."""

from __future__ import annotations

from dataclasses import dataclass

from nimbus.datagen.errors import InputError
from nimbus.datagen.store.remote.address import StoreAddress

MOST_NAMES = 10_000_000
"""Largest number of objects in a listing."""
LARGEST_OBJECT = 1 << 36
"""Largest object that is downloaded [bytes]; shards have a few GB."""


class MissingObjectError(InputError):
    """Raised when an object does not exist."""


class MissingBucketError(InputError):
    """Raised when a bucket does not exist and the store's answer names it; an answer to HEAD does not."""


def missing_bucket(address: StoreAddress) -> MissingBucketError:
    """Return the error for an address in a bucket that does not exist."""
    what, instead = f"there is no bucket '{address.bucket}'", "create the bucket first, or give another address"
    return MissingBucketError(what, where=str(address), instead=instead)


def denied_access(where: str) -> InputError:
    """Return the error for an object that the credentials of this process do not open."""
    instead = "grant this user access, or use other credentials (docs/object-store.md)"
    return InputError("the store denies access", where=where, instead=instead)


@dataclass(frozen=True, kw_only=True)
class ObjectStat:
    """Size and version of an object."""

    byte_count: int
    etag: str
    """Version, which changes with the content."""


def too_many_names(where: str) -> InputError:
    """Return the error for a listing that is too long."""
    what = f"the store lists more than {MOST_NAMES} objects"
    return InputError(what, where=where, instead="give the address of one dataset")


def check_size(byte_count: int, limit: int, *, where: str) -> None:
    """Refuse an object that is larger than a limit [bytes] with an :class:`InputError`."""
    if byte_count > limit:
        what = f"{byte_count} bytes; the limit is {limit}"
        raise InputError(what, where=where, instead="restore it from a copy")
