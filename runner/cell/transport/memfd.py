"""Anonymous shared memory, reached through descriptors only and freed with the last process that holds one."""

from __future__ import annotations

import mmap
import os

from nimbus.datagen.errors import StorageError
from nimbus.datagen.machine import available_memory

_KEPT_FREE = 64 << 20
"""Memory left to other programs by an allocation [bytes]."""


def create_memory(name: str, byte_count: int) -> int:
    """Create zeroed, fully allocated memory of fixed size; return its descriptor.

    Args:
        name: Name shown in ``/proc``; need not be unique.
        byte_count: Size.

    Raises:
        StorageError: There is too little free memory. Allocating at once means that a later access cannot end in
            SIGBUS.
    """
    import fcntl

    free = available_memory()
    if byte_count + _KEPT_FREE > free:
        raise _short(byte_count, f"{free >> 20} MiB are free")
    fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        # Allocate now: on a machine without memory a later write to a sparse file ends in SIGBUS.
        os.posix_fallocate(fd, 0, byte_count)
        # The memory is sealed: if one process shrank it, SIGBUS would end all others.
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    except OSError as error:
        os.close(fd)
        raise _short(byte_count, os.strerror(error.errno or 0)) from None
    return fd


def map_memory(fd: int) -> mmap.mmap:
    """Map the whole of a memory that any process made with :func:`create_memory`.

    Raises:
        ValueError: The descriptor belongs to something that could shrink below the mapping.
    """
    import fcntl

    try:
        seals = fcntl.fcntl(fd, fcntl.F_GET_SEALS)
    except OSError:
        seals = 0
    if not seals & fcntl.F_SEAL_SHRINK:
        raise ValueError(f"descriptor {fd} is not a sealed memory")
    return mmap.mmap(fd, os.fstat(fd).st_size)


def _short(byte_count: int, why: str) -> StorageError:
    what = f"{byte_count / (1 << 20):.0f} MiB of shared memory are needed, {why}"
    return StorageError(what, where="memory", instead="close other programs, or use fewer workers")
