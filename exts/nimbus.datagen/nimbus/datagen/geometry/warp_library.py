"""Start of Warp: silent, and with compiled kernels in a folder of the user."""

from __future__ import annotations

import os
from pathlib import Path

from nimbus.datagen.files.cache import cache_folder
from nimbus.datagen.files.variables import variable_path
from nimbus.datagen.machine import silent_stderr


def start_warp() -> None:
    """Initialize Warp; a second call does nothing.

    Its kernels lie in ``WARP_CACHE_PATH``, or in a folder of the cache. Warp itself would accept a relative path, and
    run machine code of the current folder.

    Raises:
        InputError: ``WARP_CACHE_PATH`` is a relative path, or the folder of the cache is unusable.
    """
    import warp

    warp.config.log_level = warp.LOG_ERROR  # Warp would report every kernel that it loads
    if warp.config.kernel_cache_dir is None:  # it is set once Warp is initialized
        named = os.environ.get("WARP_CACHE_PATH")
        folder: Path = variable_path("WARP_CACHE_PATH", named) if named else cache_folder("warp")
        warp.config.kernel_cache_dir = str(folder)
    with silent_stderr():  # Warp also reports a missing GPU, without using its log
        warp.init()
