"""Images in HDF5, one frame per chunk, compressed outside of HDF5 by igzip in a quarter of zlib's time."""

from __future__ import annotations

import zlib
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

try:
    from isal import isal_zlib
except ImportError:  # processors without wheels: the streams are larger or smaller, their content is the same
    isal_zlib = None

_IGZIP_LEVEL = 2
"""Level of igzip, 0 to 3, on another scale than zlib's; docs/decisions.md has the figures."""


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
