"""Checks of an HDF5 file before it is read: its contents must be in this file, and have their declared sizes."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable
from typing import Any

import h5py

_LEAST = 1 << 20
"""Size up to which a dataset is read without a comparison with its stored bytes [bytes]."""
_DEFLATE = 1100
"""Upper bound of deflate's compression ratio, which is at most 1032, with a margin for chunks."""

_LARGEST_CHUNK = 1 << 28
"""Largest size of a chunk [bytes]; HDF5 unpacks chunks whole. An image of 16 megapixels takes a fifth of this."""
_HARMLESS = 1 << 18
"""Size up to which a stored chunk is unpacked without a check: it becomes 270 MB at most [bytes]."""
_FILTERS = {h5py.h5z.FILTER_DEFLATE, h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FILTER_FLETCHER32}
"""Filters that do not expand, or expand by a known factor; a second deflate would multiply it."""
_DEEPEST, _MOST_ENTRIES = 8, 100_000
"""Largest depth of groups, and largest number of their entries; episodes have three levels and a hundred entries."""
_CHECKSUM = 4
"""Size of the checksum of FLETCHER32 [bytes]."""

_HARD: int = h5py.h5l.TYPE_HARD  # pyright: ignore[reportAttributeAccessIssue]
"""Type of a link that is a group's own entry rather than an alias."""


def check_size(dataset: h5py.Dataset) -> None:
    """Refuse a dataset that declares far more than it stores, or stores its values elsewhere in the file.

    Missing rows would read as zeros; many texts of variable length may refer to a single text, which would be read for
    each of them.

    Raises:
        ValueError: The declared size is impossible for the stored bytes, or the dataset is not stored like an array.
    """
    is_text = h5py.check_string_dtype(dataset.dtype) and dataset.shape == ()  # one text, at most as long as the file
    if dataset.dtype.hasobject and not is_text:
        raise ValueError("has values of variable length, or references")
    created: Any = dataset.id.get_create_plist()
    filters = [created.get_filter(number)[0] for number in range(created.get_nfilters())]
    if len(set(filters)) < len(filters) or not _FILTERS.issuperset(filters):
        raise ValueError("is compressed with other filters than shuffle, gzip and fletcher32")
    if dataset.chunks and _chunk_bytes(dataset) > _LARGEST_CHUNK:
        raise ValueError(f"has chunks of {_chunk_bytes(dataset)} bytes; the limit is {_LARGEST_CHUNK}")
    declared = int(dataset.size or 0) * dataset.dtype.itemsize
    stored = dataset.id.get_storage_size()
    if declared > _LEAST and declared > _DEFLATE * stored:
        raise ValueError(f"declares {declared} bytes, {stored} are stored")


def check_streams(dataset: h5py.Dataset, rows: Iterable[int] | None = None) -> None:
    """Refuse compressed chunks that expand beyond the size of a chunk; HDF5 would unpack any length.

    Args:
        dataset: Dataset that :func:`check_size` has accepted.
        rows: Rows that will be read; all by default. They limit the check if every chunk is one row.

    Raises:
        ValueError: A chunk expands too far.
    """
    if not dataset.compression or dataset.id.get_storage_size() <= _HARMLESS:
        return
    place: Any = dataset.id
    found: list[Any] = []
    if rows is not None and dataset.chunks == (1, *dataset.shape[1:]):
        corner = (0,) * (dataset.ndim - 1)
        found += [place.get_chunk_info_by_coord((row, *corner)) for row in rows]
    else:
        place.chunk_iter(lambda info: found.append(info) if info.size > _HARMLESS else None)
    for chunk in found:
        if chunk.byte_offset is None or chunk.size <= _HARMLESS:
            continue
        _, stream = place.read_direct_chunk(chunk.chunk_offset)
        if _expands_beyond(stream, most=_chunk_bytes(dataset) + _CHECKSUM):
            raise ValueError(f"a chunk expands to more than its {_chunk_bytes(dataset)} bytes")


def _chunk_bytes(dataset: h5py.Dataset) -> int:
    return math.prod(dataset.chunks or ()) * dataset.dtype.itemsize


def _expands_beyond(stream: bytes, *, most: int) -> bool:
    """Return True if a zlib stream unpacks to more than ``most`` bytes; HDF5 reports damaged streams.

    HDF5 stops at the damage as well.
    """
    unpacking, total = zlib.decompressobj(), 0
    try:
        while not unpacking.eof and total <= most:
            part = unpacking.decompress(stream, 1 << 20)
            total, stream = total + len(part), unpacking.unconsumed_tail
            if not part and not stream:
                break
    except zlib.error:
        pass
    return total > most


def dataset_paths(file: h5py.File) -> list[str]:
    """Return the paths of all datasets that are in a file's own groups.

    Raises:
        ValueError: The groups are nested too deeply, or there are too many entries.
    """
    found: list[str] = []
    groups: list[tuple[str, h5py.Group]] = [("", file)]
    count = 0
    while groups:
        above, group = groups.pop()
        if above.count("/") > _DEEPEST:
            raise ValueError(f"groups are nested more than {_DEEPEST} deep")
        links: Any = group.id.links
        for name in map(str, group):
            if (count := count + 1) > _MOST_ENTRIES:
                raise ValueError(f"more than {_MOST_ENTRIES:,} entries")
            if links.get_info(name.encode(errors="surrogateescape")).type != _HARD:
                continue
            item = group[name]
            if isinstance(item, h5py.Dataset):
                found.append(above + name)
            elif isinstance(item, h5py.Group):
                groups.append((f"{above}{name}/", item))
    return found


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
