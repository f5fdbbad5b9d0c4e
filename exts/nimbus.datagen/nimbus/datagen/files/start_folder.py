"""Folder in which a command was started, which the process itself leaves.

Relative paths of the user begin in this folder. It may be a dataset of others, and libraries open files of the current
folder by themselves: settings, headers, shared libraries. A process that works in the root folder offers them none.
"""

from __future__ import annotations

import os
from pathlib import Path

_left: list[Path] = []


def has_left() -> bool:
    """Return True if this process has left the folder in which it was started."""
    return bool(_left)


def start_folder() -> Path:
    """Return the folder in which relative paths of the user begin."""
    return _left[-1] if _left else Path.cwd()


def shown_path(path: Path) -> str:
    """Return an absolute path for a message: relative to the folder in which the command was started if it is in it."""
    here = start_folder()
    return str(path.relative_to(here) if here != here.parent and path.is_relative_to(here) else path)


def leave_start_folder() -> None:
    """Make the root folder the current one of this process, and of those that it starts.

    Entries of ``PYTHONPATH`` become absolute, so that child processes find the same modules; an empty one, which means
    the current folder, is left out.
    """
    _left.append(Path.cwd())
    if entries := [os.path.abspath(one) for one in os.environ.get("PYTHONPATH", "").split(os.pathsep) if one]:
        os.environ["PYTHONPATH"] = os.pathsep.join(entries)
    os.chdir(os.sep)
