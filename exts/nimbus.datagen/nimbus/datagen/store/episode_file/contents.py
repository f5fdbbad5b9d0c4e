"""Checks of an HDF5 file before its contents are read: they are in this file, and have their declared sizes."""

from __future__ import annotations

from typing import Any

import h5py

_LEAST = 1 << 20
"""Size up to which a dataset is read without a comparison with its stored bytes [bytes]."""
_DEFLATE = 1100
"""Upper bound of deflate's compression ratio, which is at most 1032, with a margin for chunks."""

_HARD: int = h5py.h5l.TYPE_HARD  # pyright: ignore[reportAttributeAccessIssue]
"""Type of a link that is a group's own entry rather than an alias."""


def check_size(dataset: h5py.Dataset) -> None:
    """Refuse a dataset that declares far more than it stores, because missing rows would read as zeros.

    Raises:
        ValueError: The declared size is impossible for the stored bytes.
    """
    declared = int(dataset.size or 0) * dataset.dtype.itemsize
    stored = dataset.id.get_storage_size()
    if declared > _LEAST and declared > _DEFLATE * stored:
        raise ValueError(f"declares {declared} bytes, {stored} are stored")


def check_own(file: h5py.File, path: str) -> h5py.Group | h5py.Dataset | None:
    """Return the object at a path in a file, or None; refuses content from outside the file.

    Args:
        file: The file.
        path: Path of a group or dataset in it.

    Raises:
        ValueError: The path is a link, or the data are in another file.
    """
    links: Any = file.id.links
    parts = path.encode().split(b"/")
    # Every part of the path is checked, because a group in it may be a link as well.
    for count in range(1, len(parts) + 1):
        try:
            kind = links.get_info(b"/".join(parts[:count])).type
        except (KeyError, RuntimeError):
            return None
        if kind != _HARD:  # a soft link may lead to an external one
            raise ValueError("a link, which may lead into another file")
    place: Any = file[path]
    if isinstance(place, h5py.Dataset) and (place.external or place.is_virtual):
        raise ValueError("its data lie in another file")
    return place
