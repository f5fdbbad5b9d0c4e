"""Builds the extension archive for Kit: ``dist/nimbus.datagen-<version>.zip``, with real folders in place of links.

Unpack it into ``extsUser`` of Isaac Sim, or into any folder that ``--ext-folder`` names. The same files give the same
archive, byte for byte.
"""

from __future__ import annotations

import os
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

EXTENSION = Path(__file__).resolve().parent
LEFT_OUT = {"__pycache__", Path(__file__).name, "make_images.py", "make_labels.py"}
_DAY_ONE = (1980, 1, 1, 0, 0, 0)
"""Earliest date that a zip archive can store."""


def files() -> Iterator[tuple[Path, Path]]:
    """Yield every file of the extension: its path, and its path in the archive."""
    for folder, folders, names in os.walk(EXTENSION, followlinks=True):
        folders[:] = sorted(set(folders) - LEFT_OUT)
        for name in sorted(set(names) - LEFT_OUT):
            if not name.endswith((".pyc", ".log")):
                path = Path(folder, name)
                yield path, path.relative_to(EXTENSION)


def pack(target: Path) -> Path:
    """Write the archive into a folder; return its path."""
    version = tomllib.loads((EXTENSION / "config/extension.toml").read_text(encoding="utf-8"))["package"]["version"]
    target.mkdir(parents=True, exist_ok=True)
    path = target / f"{EXTENSION.name}-{version}.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for source, place in files():
            entry = zipfile.ZipInfo(f"{EXTENSION.name}/{place.as_posix()}", _DAY_ONE)
            entry.external_attr, entry.compress_type = 0o644 << 16, zipfile.ZIP_DEFLATED
            archive.writestr(entry, source.read_bytes())
    return path


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else EXTENSION.parents[1] / "dist"
    sys.stdout.write(f"{pack(folder)}\n")
