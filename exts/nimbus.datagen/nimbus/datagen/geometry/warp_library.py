"""Start of Warp: silent, and with compiled kernels in a folder of the user."""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType
from typing import Any

from nimbus.datagen.files.cache import code_folder
from nimbus.datagen.machine import silent_stderr


def kernel_folder() -> Path:
    """Return the folder of compiled kernels: ``WARP_CACHE_PATH``, or a folder of the cache.

    Raises:
        InputError: ``WARP_CACHE_PATH`` is a relative path, the folder cannot be used, or other users can write there.
    """
    return code_folder("warp")


def load_kernels(module: ModuleType) -> None:
    """Load the kernels of a module for the CPU; those that are not in the user's folder are compiled.

    Raises:
        InputError: See :func:`start_warp`.
    """
    import warp

    start_warp()
    warp.load_module(module, device="cpu")


def start_warp() -> None:
    """Initialize Warp; a second call does nothing.

    Its kernels lie in ``WARP_CACHE_PATH``, or in a folder of the cache. Warp itself would accept a relative path, and
    run machine code of the current folder.

    Raises:
        InputError: ``WARP_CACHE_PATH`` is a relative path, the folder cannot be used, or other users can write there.
    """
    import warp

    warp.config.log_level = warp.LOG_ERROR  # Warp would report every kernel that it loads
    if warp.config.kernel_cache_dir is None:  # it is set once Warp is initialized
        warp.config.kernel_cache_dir = str(kernel_folder())
    # For a precompiled header, the compiler would read ``builtin.h`` in the current folder, which may be a dataset of
    # others; kernels would then contain its code.
    warp.config.use_precompiled_headers = False
    with silent_stderr():  # Warp also reports a missing GPU, without using its log
        warp.init()
    _compile_in_folder_of_warp()


def _compile_in_folder_of_warp() -> None:
    """Let the compiler for GPUs search the headers of a kernel in Warp's folder.

    It searches in the folder of the program's name first. Warp gives a name without one, which stands for the current
    folder: code of a ``builtin.h`` there would be part of the kernel. A second call changes nothing.
    """
    try:
        from warp._src.build import warp_home
        from warp._src.context import runtime
    except ImportError:  # an older Warp, such as that of Isaac Sim, which starts in a private folder
        return
    core: Any = runtime.core
    if getattr(core.wp_cuda_compile_program, "__name__", "") == "compile_in_folder":
        return
    folder, compile_program = os.fsencode(os.path.join(warp_home, "native")), core.wp_cuda_compile_program

    def compile_in_folder(source: bytes, name: bytes, *more: object) -> int:
        return compile_program(source, os.path.join(folder, name), *more)

    core.wp_cuda_compile_program = compile_in_folder
