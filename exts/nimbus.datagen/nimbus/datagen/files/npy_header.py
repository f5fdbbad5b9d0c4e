"""Header of NPY files from other programs, read before memory for the content is allocated."""

from __future__ import annotations

from typing import IO, Any

import numpy as np

_READERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def read_npy_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Read the header from the beginning of a file.

    NumPy evaluates the header as a Python literal and then as a type, and raises whatever these raise:
    ``IndexError``, ``TokenError``, ``RecursionError``, ``MemoryError`` and others.

    Returns:
        Shape, whether columns come first, and type.

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
