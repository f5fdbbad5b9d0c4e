"""NPY and NPZ files from other programs: the declared size is checked before memory is allocated."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.files.archives import UNREADABLE, SafeZip

_SMALL = 1 << 20
_READERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def read_npy_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Read the header from the beginning of a file.

    NumPy evaluates the header as a Python literal and then as a type, and raises whatever these raise:
    ``IndexError``, ``TokenError``, ``RecursionError``, ``MemoryError`` and others.

    Returns:
        Shape, True if columns come first, and type.

    Raises:
        ValueError: The file is not NPY of version 1 or 2; it may be an archive of arrays.
    """
    try:
        version = np.lib.format.read_magic(file)
        if version not in _READERS:
            raise ValueError(f"NPY version {version}")
        return _READERS[version](file)
    except Exception as error:
        raise ValueError(str(error).partition("\n")[0] or type(error).__name__) from None


def read_npz(source: Path | bytes, *, limit: int, most_growth: int = 1100) -> dict[str, NDArray[Any]]:
    """Read all arrays of an NPZ file, by name.

    Args:
        source: The file, or its content.
        limit: Largest size of all arrays [bytes].
        most_growth: Largest ratio of unpacked to packed size of a member above 1 MiB; 1100 is deflate's.

    Raises:
        ValueError: The file is damaged, has an array of objects, or unpacks to more than it declares or than a limit.
        OSError: The file cannot be read.
    """
    try:
        with SafeZip(io.BytesIO(source) if isinstance(source, bytes) else source) as packed:
            entries = packed.infolist()
            if (size := sum(entry.file_size for entry in entries)) > limit:
                raise ValueError(f"{size} bytes unpacked; the limit is {limit}")
            for entry in entries:
                if entry.file_size > _SMALL and entry.file_size > most_growth * entry.compress_size:
                    raise ValueError(
                        f"'{entry.filename}' unpacks to {entry.file_size // max(entry.compress_size, 1)} times its size"
                    )
            return {entry.filename.removesuffix(".npy"): _member(packed.open(entry)) for entry in entries}
    except OSError:
        raise
    except (*UNREADABLE, RuntimeError) as error:  # zipfile raises RuntimeError for a password
        raise ValueError(str(error).partition("\n")[0] or type(error).__name__) from None


def _member(file: IO[bytes]) -> NDArray[Any]:
    with file:
        shape, columns_first, dtype = read_npy_header(file)
        content = file.read()
    if dtype.hasobject or any(side < 0 for side in shape) or math.prod(shape) * dtype.itemsize != len(content):
        raise ValueError(f"an array of type {dtype} and shape {shape} in {len(content)} bytes")
    return np.ndarray(shape, dtype, content, order="F" if columns_first else "C").copy()
