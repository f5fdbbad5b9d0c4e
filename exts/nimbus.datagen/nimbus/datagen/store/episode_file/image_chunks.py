"""Images in HDF5, a frame a chunk, compressed outside of HDF5: by igzip, which takes a quarter of zlib's time."""

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
"""Level of igzip's 0 to 3, which do not mean zlib's; figures are in docs/decisions.md."""


def create_images(group: h5py.Group, path: str, shape: tuple[int, ...], dtype: Any, *, level: int = 1) -> h5py.Dataset:
    """Create a dataset for :func:`write_images`, which any reader of HDF5 reads.

    Args:
        group: Where it goes.
        path: Name in the group.
        shape: (T, H, W, ...) of all frames.
        dtype: Of a pixel's values.
        level: Of gzip, 1 (fast) to 9 (small).
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
    """Write consecutive frames; compression does not hold HDF5's lock.

    Args:
        images: What :func:`create_images` gave.
        start: Row of the first frame.
        frames: (N, H, W, ...) of the dataset's type.
        level: Of gzip, 1 (fast) to 9 (small).
    """
    for row, frame in enumerate(np.ascontiguousarray(frames, dtype=images.dtype), start=start):
        images.id.write_direct_chunk((row,) + (0,) * frame.ndim, deflate(shuffle(frame), level=level))


def shuffle(frame: NDArray[Any]) -> NDArray[Any]:
    """Put the first bytes of all values of a contiguous array before the second ones, as HDF5's filter does."""
    if frame.itemsize == 1:
        return frame
    return np.ascontiguousarray(frame.reshape(-1, 1).view(np.uint8).T)


def deflate(frame: NDArray[Any], *, level: int = 1) -> bytes:
    """Compress a contiguous array to a zlib stream.

    Args:
        frame: Any shape and type.
        level: Of gzip, 1 (fast) to 9 (small).
    """
    if level == 1 and isal_zlib is not None:
        return isal_zlib.compress(frame.data, _IGZIP_LEVEL)
    return zlib.compress(frame.data, level)
