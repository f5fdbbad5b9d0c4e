"""A simulated disk without the features that FAT and some network mounts lack: their calls fail in this process."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Callable
from typing import Any

LACKING = ("links", "locks", "folder_sync")


def impoverish(*lacking: str, put: Callable[[Any, str, Any], None] = setattr) -> None:
    """Let calls fail from now on.

    Args:
        lacking: Names from :data:`LACKING`, and ``ranges`` for locks of parts of files.
        put: Replaces a function in its module; that of a monkeypatch restores the old one.
    """
    fsync = os.fsync

    def sync_files(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        fsync(descriptor)

    put(os, "sync", lambda: None)  # the one of this machine takes a second
    for name in lacking:
        match name:
            case "links":
                put(os, "link", _failing(errno.EPERM))
            case "locks":
                put(fcntl, "flock", _failing(errno.ENOLCK))
            case "ranges":
                put(fcntl, "lockf", _failing(errno.ENOLCK))
            case "folder_sync":
                put(os, "fsync", sync_files)


def _failing(number: int) -> Callable[..., Any]:
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail
