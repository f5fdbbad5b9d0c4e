"""Checks of foreign files: a limited process reads each content first; later readings of it need no such process."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.atomic import write_atomic
from nimbus.datagen.files.bounded import check_regular, read_typed
from nimbus.datagen.files.cache import cache_folder, writing
from nimbus.datagen.files.codec import to_json
from nimbus.datagen.files.limited_process import MEMORY, SECONDS, run_limited


def check_once(path: Path, function: str, *, version: int, seconds: int = SECONDS, memory: int = MEMORY) -> None:
    """Read a file in a limited child process, unless it and the files to which it refers were read before at this path.

    A copy elsewhere is read again: an absolute path in it leads to a file beside the original, which may have changed.

    Args:
        path: The file.
        function: ``package.module:name``; it takes the absolute path as ``file``, reads everything that the caller will
            read, and returns the absolute paths of all files that it has read, and of those that it named and that are
            missing.
        version: Version of the function; raised when it refuses more.
        seconds: CPU time that the function may use [s].
        memory: Memory that the function may add to the process [bytes].

    Raises:
        InputError: The file cannot be read, the function refuses it or exceeds a limit, or crashes.
    """
    key = hashlib.sha256(os.fsencode(f"{function} {version} {_digest(path)} {path.absolute()}")).hexdigest()[:24]
    kept = cache_folder("checked") / f"{key}.json"
    if _is_known(kept):
        return
    given = {"file": path}
    files = run_limited(function, given, where=str(path), seconds=seconds, memory=memory, reads=None)
    found = {file: _state(Path(file)) for file in sorted({*files, str(path.absolute())})}
    with writing(kept.parent):
        write_atomic(kept, to_json(found), durable=False, shared=True)


def _is_known(kept: Path) -> bool:
    """Return True if all files have the content with which they were checked."""
    try:
        known = read_typed(dict[str, str], kept)
        return all(_state(Path(file)) == digest for file, digest in known.items())
    except InputError:
        return False


def _state(path: Path) -> str:
    """Return the hash of a file; empty if it is missing, because it may be there the next time."""
    return _digest(path) if os.path.lexists(path) else ""


def _digest(path: Path) -> str:
    check_regular(path)
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
