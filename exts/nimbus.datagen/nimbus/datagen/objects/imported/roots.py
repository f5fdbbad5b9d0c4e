"""Search for files that an asset refers to, below a root, even if the path is from another machine."""

from __future__ import annotations

import re
from pathlib import Path

from nimbus.datagen.files.bounded import is_file_below

_USUAL = ("textures", "images", "materials/textures", "../textures", "../images", "../materials/textures")
"""Folders beside a mesh in which datasets keep textures."""
_LONGEST, _MOST_FOLDERS = 1024, 32
"""Longest accepted reference [characters], and its largest number of folders: each is looked for in several places."""


def below(root: Path, folder: Path, name: str) -> str:
    """Find a referenced file, and return its path below the root; empty if it is outside or missing.

    Args:
        root: Root of the source, resolved.
        folder: Base of relative paths.
        name: Reference as written. It may be absolute or begin with ``package://``: its last components are then
            searched for near the folder.
    """
    name = re.sub(r"^(package|model|file)://", "", name.strip()).replace("\\", "/")
    parts = [part for part in name.split("/") if part not in ("", ".", "..")]
    if not parts or "\0" in name or len(name) > _LONGEST or name.count("/") > _MOST_FOLDERS:
        return ""
    is_absolute = name.startswith("/") or ":" in parts[0]
    places = [] if is_absolute else [folder / name, root / name]
    places += [base / "/".join(parts[skip:]) for skip in range(len(parts)) for base in (folder, folder.parent)]
    places += [folder / usual / parts[-1] for usual in _USUAL]
    for place in places:
        if is_file_below(place, root):
            return place.resolve().relative_to(root).as_posix()
    return ""
