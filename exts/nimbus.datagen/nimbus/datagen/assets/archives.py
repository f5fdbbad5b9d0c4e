"""Archives of assets: unpacking of the files that may belong to an asset."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from nimbus.datagen.files import archives
from nimbus.datagen.files.limited_process import run_limited
from nimbus.datagen.objects.imported.read import SUFFIXES

ARCHIVES = (".zip", ".whl", ".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz")
_WANTED = {
    *(*SUFFIXES, ".msh", ".mtl", ".bin", ".png", ".jpg", ".jpeg", ".tga", ".bmp", ".tif", ".tiff", ".webp"),
    *(".xml", ".urdf", ".xacro", ".json", ".pbtxt", ".config", ".sdf"),
}
"""Suffixes of files that may belong to an asset; other files in an archive are not unpacked."""
_BYTES = 2 << 30
"""Largest unpacked size, without skipped files [bytes]."""
_SECONDS, _MEMORY = 600, 1 << 30
"""Limits of CPU time [s] and memory [bytes] of the process that unpacks."""


def is_archive(path: Path) -> bool:
    """Return True if the suffix of a file is that of an archive."""
    return path.name.lower().endswith(ARCHIVES)


def unpack(path: Path, folder: Path) -> None:
    """Unpack the files that may belong to assets into a new folder, in a process with limits of time and memory.

    Raises:
        InputError: The file is not an archive, contains paths outside its folder, or exceeds the limits.
    """
    given = {"file": path, "folder": folder}
    function = f"{__name__}:unpack_here"
    run_limited(function, given, where=str(path), seconds=_SECONDS, memory=_MEMORY, writes=[folder])


def unpack_here(file: str, folder: str) -> None:
    """Unpack an archive like :func:`unpack`, in this process."""
    archives.unpack(Path(file), Path(folder), is_wanted=_is_wanted, limit=_BYTES)


def _is_wanted(place: PurePosixPath) -> bool:
    name = place.name.lower()
    return place.suffix.lower() in _WANTED or name.startswith(("license", "licence", "copying", "readme", "metadata"))
