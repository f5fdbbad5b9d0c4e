"""Images in HDF5, one frame per chunk, compressed outside of HDF5 by igzip in a quarter of zlib's time."""

from __future__ import annotations

import math
import zlib
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.store.episode_file.contents import check_streams

try:
    from isal import isal_zlib
except ImportError:  # isal has no wheel for this processor; zlib's streams have other sizes and the same content
    isal_zlib = None

_IGZIP_LEVEL = 2
"""Level of igzip, 0 to 3, which is not comparable with zlib's levels; docs/decisions.md has the figures."""


def create_images(group: h5py.Group, path: str, shape: tuple[int, ...], dtype: Any, *, level: int = 1) -> h5py.Dataset:
    """Create a dataset for :func:`write_images`, in standard HDF5 compression.

    Args:
        group: Parent group.
        path: Name in the group.
        shape: (T, H, W, ...) of all frames.
        dtype: Type of a pixel's values.
        level: Level of gzip, 1 (fast) to 9 (small).
    """
    return group.create_dataset(
        path,
        shape,
        dtype,
        chunks=(1, *shape[1:]),
        compression="gzip",
        compression_opts=level,
        shuffle=np.dtype(dtype).itemsize > 1,
        track_times=False,
    )


def write_images(images: h5py.Dataset, start: int, frames: NDArray[Any], *, level: int = 1) -> None:
    """Write consecutive frames; they are compressed without holding HDF5's lock.

    Args:
        images: Dataset made by :func:`create_images`.
        start: Row of the first frame.
        frames: (N, H, W, ...) of the dataset's type.
        level: Level of gzip, 1 (fast) to 9 (small).
    """
    for row, frame in enumerate(np.ascontiguousarray(frames, dtype=images.dtype), start=start):
        images.id.write_direct_chunk((row,) + (0,) * frame.ndim, deflate(shuffle(frame), level=level))


def read_images(images: h5py.Dataset, which: slice | int) -> NDArray[Any]:
    """Read frames; bytes that :func:`write_images` wrote are decompressed by igzip, and all others by HDF5.

    Args:
        images: Dataset of one frame per chunk, or any other.
        which: Rows.

    Raises:
        ValueError: A frame expands beyond its size.
        Exception: The error that h5py raises for the same rows.
    """
    rows = range(len(images))[which]
    if isal_zlib is None or rows == range(0) or not _holds_deflated_bytes(images):
        return _read_with_hdf5(images, which)
    try:
        if isinstance(rows, int):
            return _read_frame(images, rows)
        return np.stack([_read_frame(images, row) for row in rows])
    # isal's stub declares its error as an instance.
    except (OSError, RuntimeError, ValueError, isal_zlib.error):  # pyright: ignore[reportGeneralTypeIssues]
        return _read_with_hdf5(images, which)  # HDF5 raises the error that describes the damage


def _read_with_hdf5(images: h5py.Dataset, which: slice | int) -> NDArray[Any]:
    rows = range(len(images))[which]
    check_streams(images, [rows] if isinstance(rows, int) else rows)
    return images[which]


def _holds_deflated_bytes(images: h5py.Dataset) -> bool:
    """Return True if each chunk is one frame of bytes, compressed by gzip without other filters."""
    if images.chunks != (1, *images.shape[1:]) or images.dtype.itemsize > 1:
        return False
    created = images.id.get_create_plist()
    return created.get_nfilters() == 1 and created.get_filter(0)[0] == h5py.h5z.FILTER_DEFLATE


def _read_frame(images: h5py.Dataset, row: int) -> NDArray[Any]:
    """Read one frame.

    Raises:
        ValueError: The chunk is not stored, not compressed, or does not have the size of a frame.
        OSError: The file is damaged.
        RuntimeError: The file is damaged.
    """
    assert isal_zlib is not None
    shape = images.shape[1:]
    first = (row,) + (0,) * len(shape)
    chunk = images.id.get_chunk_info_by_coord(first)
    if chunk.byte_offset is None or chunk.filter_mask:
        raise ValueError("not stored, or not compressed")
    _, stream = images.id.read_direct_chunk(first)
    size, decompressor = math.prod(shape), isal_zlib.decompressobj()
    # The output is bounded, because a damaged stream may expand to any length.
    found = bytearray(decompressor.decompress(stream, size + 1))
    if len(found) != size or not decompressor.eof:
        raise ValueError(f"{len(found)} bytes, expected {size}")
    return np.frombuffer(found, dtype=images.dtype).reshape(shape)


def shuffle(frame: NDArray[Any]) -> NDArray[Any]:
    """Apply HDF5's byte shuffle: the first bytes of all values, then the second ones, and so on."""
    if frame.itemsize == 1:
        return frame
    return np.ascontiguousarray(frame.reshape(-1, 1).view(np.uint8).T)


def deflate(frame: NDArray[Any], *, level: int = 1) -> bytes:
    """Compress a contiguous array to a zlib stream.

    Args:
        frame: Any shape and type.
        level: Level of gzip, 1 (fast) to 9 (small).
    """
    if level == 1 and isal_zlib is not None:
        return isal_zlib.compress(frame.data, _IGZIP_LEVEL)
    return zlib.compress(frame.data, level)
