"""Files that come with Nimbus, by name: ``scenes/tasks/sort_trash.yaml`` is the task ``sort_trash``."""

from __future__ import annotations

from pathlib import Path

import nimbus
from nimbus.datagen.errors import InputError, suggest


def scene_folder(room: str) -> Path:
    """Return a folder of ``scenes/``, for example ``tasks``."""
    rooms = (Path(path) / "scenes" / room for path in nimbus.__path__)
    return next(folder for folder in rooms if folder.is_dir())


def scene_names(room: str, *, suffix: str = ".yaml") -> list[str]:
    """Return the names of the files in a folder of ``scenes/``, sorted."""
    return sorted(path.stem for path in scene_folder(room).glob(f"*{suffix}"))


def is_path(name_or_path: str | Path) -> bool:
    """Return True for a path rather than a name: it has a folder, a suffix, or a trailing slash."""
    path = Path(name_or_path)
    return bool(path.suffix) or len(path.parts) > 1 or str(name_or_path).endswith("/")


def literal_path(path: Path) -> Path:
    """Return a path that libraries can read only as a path; it is made absolute if they could read something else.

    The current folder may belong to another user. In it, ``file:/videos/a.mp4`` and ``~/a.glb`` may be files, but
    libraries would open others: FFmpeg and PyArrow read addresses, and trimesh looks for ``~`` in the home folder.
    ``Path(".")`` is made absolute too, because ``Path(".") / name`` begins with the name.
    """
    first = path.parts[0] if path.parts else ""
    return path.absolute() if not first or ":" in first or first.startswith("~") else path


def resolve_from(folder: Path, name_or_path: str) -> str:
    """Resolve a path from a file in ``folder``: relative paths start from that folder, and names are unchanged."""
    slash = "/" if name_or_path.endswith("/") else ""
    return f"{literal_path(folder / name_or_path)}{slash}" if is_path(name_or_path) else name_or_path


def scene_file(room: str, name_or_path: str | Path, *, kind: str, suffix: str = ".yaml", where: str = "") -> Path:
    """Return the file of a name in ``scenes/<room>``; a path is returned unchanged.

    Args:
        room: Folder of ``scenes/``.
        name_or_path: A name, or a path (it has a folder or a suffix).
        kind: Term in errors, for example ``task``.
        suffix: Suffix of the files in that folder.
        where: Location of the name, for the error.

    Raises:
        InputError: There is no such file; the message lists the known names.
    """
    path = Path(name_or_path)
    if is_path(name_or_path):
        if what := _why_not(path):
            raise InputError(what, where=f"{where}: {path}" if where else str(path), instead="correct the path")
        return path
    found = scene_folder(room) / f"{name_or_path}{suffix}"
    if not name_or_path or _why_not(found):
        hint = suggest(str(name_or_path), scene_names(room, suffix=suffix))
        raise InputError(f"unknown {kind} '{name_or_path}'", where=where, instead=hint)
    return found


def _why_not(path: Path) -> str:
    """Return the reason why a path is not the needed file; empty if it is."""
    try:
        if path.is_file():
            return ""
        what = "is not a regular file" if path.exists() else "no such file"
        return "is a folder; give a file" if path.is_dir() else what
    except OSError as error:
        return (error.strerror or str(error)).lower()
