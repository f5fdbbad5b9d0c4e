"""Cleanup of shared memory left by a dead instance of Isaac Sim, if it provably belongs to that instance.

Kit names such files ``/dev/shm/carb-…`` and removes them when it closes, but not when it is killed. A running instance
records its mapped files, with inode and time. The next process with the same root removes those that are unchanged and
not mapped by any running process.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

SHARED = Path("/dev/shm")
_PREFIX = "carb"
_RECORD = "shared_memory.json"


def note_shared_memory(root: Path, *, folder: Path = SHARED) -> None:
    """Record the shared-memory files that this process has mapped.

    Args:
        root: Root folder of the instance.
        folder: Folder of shared memory.
    """
    mapped = [
        [name, inode, folder.joinpath(name).lstat().st_ctime_ns]
        for name, inode in sorted(set(_mapped("self", folder)))
        if folder.joinpath(name).exists()
    ]
    record = root / _RECORD
    record.with_suffix(".part").write_text(json.dumps(mapped), encoding="utf-8")
    record.with_suffix(".part").replace(record)


def remove_shared_memory(root: Path, *, folder: Path = SHARED) -> list[str]:
    """Remove files left by the last instance with a root; return their names.

    Args:
        root: Root folder of a dead instance.
        folder: Folder of shared memory.
    """
    try:
        entries = json.loads((root / _RECORD).read_text("utf-8"))
        recorded = {(str(name), int(inode)): int(changed) for name, inode, changed in entries}
    except (OSError, ValueError, TypeError):
        return []
    in_use = {entry for process in _processes() for entry in _mapped(process, folder)}
    removed = []
    for name, inode in sorted(set(recorded) - in_use):
        if "/" not in name and _is_ours(folder / name, inode, changed=recorded[name, inode]):
            (folder / name).unlink(missing_ok=True)
            removed.append(name)
    (root / _RECORD).unlink(missing_ok=True)
    return removed


def _is_ours(path: Path, inode: int, *, changed: int) -> bool:
    """Return True if a file is the recorded one and belongs to this user; the inode alone may have been reused."""
    try:
        found = path.lstat()
    except OSError:
        return False
    same = found.st_ino == inode and found.st_ctime_ns == changed
    return same and path.name.startswith(_PREFIX) and found.st_uid == os.getuid()


def _processes() -> Iterator[str]:
    yield from (entry.name for entry in Path("/proc").iterdir() if entry.name.isdigit())


def _mapped(process: str, folder: Path) -> Iterator[tuple[str, int]]:
    """Yield name and inode of a process's mapped files; nothing for processes of other users."""
    try:
        lines = Path("/proc", process, "maps").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        words = line.split(maxsplit=5)
        if len(words) == 6 and words[5].startswith(f"{folder}/{_PREFIX}"):
            yield words[5].rpartition("/")[2], int(words[4])
