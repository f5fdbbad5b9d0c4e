"""Where an error arose in somebody's own code: a skill or component that is neither Nimbus nor an installed library."""

from __future__ import annotations

import sysconfig
import traceback
from pathlib import Path

import nimbus

_INSTALLED = {"site-packages", "dist-packages"}


def find_user_frame(error: BaseException) -> str:
    """``file:line`` of the innermost frame in somebody's own code; empty when there is none.

    Args:
        error: Its traceback begins where it was caught.
    """
    frames = traceback.extract_tb(error.__traceback__)
    return next((f"{_short(frame.filename)}:{frame.lineno}" for frame in reversed(frames) if _is_own(frame)), "")


def user_frame_line(error: BaseException) -> str:
    """What a bug in somebody's own code says, with its place first; empty when it is not one."""
    place = find_user_frame(error)
    return f"{place}: {type(error).__name__}: {error}" if place else ""


def _is_own(frame: traceback.FrameSummary) -> bool:
    path = Path(frame.filename)
    if frame.filename.startswith("<") or _INSTALLED & set(path.parts):
        return False
    not_own = (*nimbus.__path__, *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib")))
    return not any(path.is_relative_to(folder) for folder in not_own)


def _short(name: str) -> str:
    """From the working directory, for what is below it."""
    path = Path(name)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else name
