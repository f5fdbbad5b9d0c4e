"""Reading of cached arrays, which are computed again if their file is damaged."""

from __future__ import annotations

import io
import zlib
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.files.archives import SafeZip


def read_arrays(path: Path) -> dict[str, NDArray[Any]] | None:
    """Read all arrays of an NPZ file of the cache.

    Returns:
        None if the file is missing or damaged, for example after a power failure, and has to be made again.
    """
    try:
        with SafeZip(path) as kept:
            files = {name.removesuffix(".npy"): io.BytesIO(kept.read(name)) for name in kept.namelist()}
        return {name: np.lib.format.read_array(file, allow_pickle=False) for name, file in files.items()}
    # zipfile raises RuntimeError for flags that a damaged file may have, such as a password.
    except (OSError, ValueError, EOFError, RuntimeError, BadZipFile, zlib.error):
        return None
