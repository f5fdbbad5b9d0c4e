"""Access of trimesh to the further files of a mesh, such as buffers and materials: regular files of its folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nimbus.datagen.files.bounded import is_file_below, read_bytes

LARGEST_FILE = 256 * 2**20
"""Largest mesh, buffer or texture [bytes]."""


def folder_resolver(mesh: Path) -> Any:
    """Return a resolver of trimesh that opens files of the mesh's folder alone; all other names are missing files.

    trimesh's own resolver would wait at a pipe.
    """
    from trimesh.resolvers import FilePathResolver

    class FolderFiles(FilePathResolver):
        """Access to the regular files below the mesh's folder."""

        def get(self, name: str) -> bytes:
            path = mesh.parent / name.strip()
            if not is_file_below(path, mesh.parent):
                raise FileNotFoundError(name)
            return read_bytes(path, limit=LARGEST_FILE)

    return FolderFiles(str(mesh.absolute()))
