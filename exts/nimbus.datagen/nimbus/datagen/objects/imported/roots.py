"""Files that an asset's file names: found below a root, also where the name is of another machine."""

from __future__ import annotations

import re
from pathlib import Path

_USUAL = ("textures", "images", "materials/textures", "../textures", "../images", "../materials/textures")
"""Folders beside a mesh in which data sets keep textures."""


def below(root: Path, folder: Path, name: str) -> str:
    """Find a file that another one names: its path below the root, empty where it leads out or is missing.

    Args:
        root: Root of the source, resolved.
        folder: Where relative names begin.
        name: As written, also with ``package://``, or absolute: then its last parts are looked for nearby.
    """
    name = re.sub(r"^(package|model|file)://", "", name.strip()).replace("\\", "/")
    parts = [part for part in name.split("/") if part not in ("", ".", "..")]
    if not parts or "\0" in name:
        return ""
    is_absolute = name.startswith("/") or ":" in parts[0]
    places = [] if is_absolute else [folder / name, root / name]
    places += [base / "/".join(parts[skip:]) for skip in range(len(parts)) for base in (folder, folder.parent)]
    places += [folder / usual / parts[-1] for usual in _USUAL]
    for place in places:
        try:
            resolved = place.resolve()
            if resolved.is_relative_to(root) and resolved.is_file():
                return resolved.relative_to(root).as_posix()
        except OSError:  # a name that is too long
            continue
    return ""
