"""Reading of files of a source, which may be a folder of another user.

An unpacked archive or a clone keeps links, and one with a name that a published dataset uses, such as ``LICENSE``,
may lead to a private file of this user. All other modules of the import read sources with these functions alone.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.asset_folders import check_below
from nimbus.datagen.files.bounded import check_regular, read_bytes
from nimbus.datagen.meshes.mesh_folder import LARGEST_FILE

_LARGEST_TEXT = 1 << 20
"""Largest size of a text beside an asset [bytes]."""


def read_source(root: Path, path: Path, *, limit: int = LARGEST_FILE) -> bytes:
    """Read a file of a source.

    Args:
        root: Folder of the source.
        path: The file.
        limit: Its largest size [bytes].

    Raises:
        InputError: The file is a link out of the source, is missing, is not a regular file, or is too large.
    """
    check_below(path, root)
    return read_bytes(path, limit=limit)


def text_beside(root: Path, path: Path, *, limit: int = _LARGEST_TEXT) -> str:
    """Read a text that may lie beside an asset; empty if it cannot be read, also because it leads out of the source."""
    try:
        return read_source(root, path, limit=limit).decode()
    except (InputError, UnicodeDecodeError):
        return ""


def hash_file(path: Path) -> str:
    """Hash a file that the user has named, such as an archive of any size, with SHA-256.

    Raises:
        InputError: The file cannot be read.
    """
    check_regular(path)
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=str(path), instead="make it readable") from None
