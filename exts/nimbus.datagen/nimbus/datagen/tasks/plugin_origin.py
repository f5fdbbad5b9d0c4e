"""Location of an error in plug-in code: outside Nimbus and installed libraries, or in an installed plug-in."""

from __future__ import annotations

import sysconfig
import traceback
from pathlib import Path

import nimbus
from nimbus.datagen.files.start_folder import shown_path

_INSTALLED = {"site-packages", "dist-packages"}
_packages: set[Path] = set()
"""Folders and files of installed plug-ins."""


def add_package(path: Path) -> None:
    """Count an installed package, or a module of one file, as plug-in code from now on."""
    _packages.add(path)


def find_user_frame(error: BaseException) -> str:
    """Return ``file:line`` of the innermost frame in plug-in code; empty when there is none.

    Args:
        error: Error whose traceback begins where it was caught.
    """
    frames = traceback.extract_tb(error.__traceback__)
    return next(
        (f"{shown_path(Path(frame.filename))}:{frame.lineno}" for frame in reversed(frames) if _is_own(frame)), ""
    )


def user_frame_line(error: BaseException) -> str:
    """Return the message of an error in plug-in code, with its location first; empty for other errors."""
    place = find_user_frame(error)
    return f"{place}: {type(error).__name__}: {error}" if place else ""


def _is_own(frame: traceback.FrameSummary) -> bool:
    path = Path(frame.filename)
    if not _packages.isdisjoint((path, *path.parents)):
        return True
    if path.suffix != ".py" or _INSTALLED & set(path.parts):  # compiled libraries name their .pxi and .pyx files
        return False
    not_own = (*nimbus.__path__, *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib")))
    return not any(path.is_relative_to(folder) for folder in not_own)
