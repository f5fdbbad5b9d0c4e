"""Cached arrays, read in full or computed again."""

from __future__ import annotations

import io
import zlib
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np
from numpy.typing import NDArray


def read_arrays(path: Path) -> dict[str, NDArray[Any]] | None:
    """Read all arrays of an NPZ file of the cache.

    Returns:
        None when it is missing or damaged, as after a power failure: it is to be made again.
    """
    try:
        with ZipFile(path) as kept:
            files = {name.removesuffix(".npy"): io.BytesIO(kept.read(name)) for name in kept.namelist()}
        return {name: np.lib.format.read_array(file, allow_pickle=False) for name, file in files.items()}
    # RuntimeError is zipfile's for flags that a damaged file may have: a password, an unknown compression.
    except (OSError, ValueError, EOFError, RuntimeError, BadZipFile, zlib.error):
        return None
