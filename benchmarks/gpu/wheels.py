"""Wheels that the bundle changes: written again without compression, or with fewer files.

A wheel compresses each file by itself with deflate. The bundle compresses uncompressed wheels as a whole instead,
which takes a third less space.
"""

from __future__ import annotations

import base64
import hashlib
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

_DAY_ONE = (1980, 1, 1, 0, 0, 0)
"""Earliest date that a zip archive can store."""
_READABLE = 0o644 << 16
"""Attributes of a file without an execute bit, as a zip archive stores them."""


def write_wheel(path: Path, files: Mapping[str, bytes], *, information: str) -> None:
    """Write a wheel with the list of its files, uncompressed; equal files give equal bytes.

    Args:
        path: File to write.
        files: Contents by path in the wheel, without the list of files.
        information: Folder of the metadata in the wheel, ``NAME-VERSION.dist-info``.
    """
    record = f"{information}/RECORD"
    lines = [f"{place},{_digest(content)},{len(content)}\n" for place, content in files.items()]
    listed = {**files, record: "".join([*lines, f"{record},,\n"]).encode()}
    _write(path, ((place, _READABLE, content) for place, content in listed.items()))


def keep_files(wheel: Path, patterns: Sequence[str]) -> None:
    """Write a wheel again, uncompressed, with its metadata and the files that match a pattern.

    Args:
        wheel: File to replace.
        patterns: Patterns of paths in the wheel, such as ``tool/*.py``.

    Raises:
        ValueError: A pattern matches no file.
    """
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        information = next(name.split("/")[0] for name in names if name.endswith(".dist-info/METADATA"))
        found = {pattern: [name for name in names if fnmatchcase(name, pattern)] for pattern in patterns}
        if unmatched := [pattern for pattern, matches in found.items() if not matches]:
            raise ValueError(f"{wheel.name} has no file {', '.join(unmatched)}")
        metadata = [name for name in names if fnmatchcase(name, f"{information}/*") and not name.endswith("/RECORD")]
        kept = {name: archive.read(name) for name in [*sum(found.values(), []), *metadata] if not name.endswith("/")}
    write_wheel(wheel, kept, information=information)


def store_uncompressed(wheel: Path) -> None:
    """Write a wheel again with the same files, uncompressed."""
    new = wheel.with_suffix(".new")
    with zipfile.ZipFile(wheel) as archive:
        entries = [entry for entry in archive.infolist() if not entry.is_dir()]
        _write(new, ((entry.filename, entry.external_attr, archive.read(entry)) for entry in entries))
    new.replace(wheel)


def _write(path: Path, files: Iterable[tuple[str, int, bytes]]) -> None:
    """Write a zip archive from names, attributes and contents."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for place, attributes, content in files:
            entry = zipfile.ZipInfo(place, _DAY_ONE)
            entry.external_attr = attributes
            archive.writestr(entry, content)


def _digest(content: bytes) -> str:
    """Return a checksum as a wheel records it."""
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
