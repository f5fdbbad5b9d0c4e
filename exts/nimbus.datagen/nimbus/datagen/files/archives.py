"""Third-party archives: zip files, Python wheels and tar files, unpacked within limits and never executed."""

from __future__ import annotations

import lzma
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Literal, Self

from nimbus.datagen.errors import InputError

_MEMBERS = 500_000
_RATIO, _SMALL = 100, 1 << 20
"""Largest ratio of unpacked to packed size of a member above 1 MiB; zeros reach 1,000, textures and meshes 10."""
_COMPRESSIONS: dict[bytes, Literal["r:gz", "r:bz2", "r:xz"]] = {
    b"\x1f\x8b": "r:gz",
    b"BZh": "r:bz2",
    b"\xfd7zXZ\x00": "r:xz",
}
"""Modes of compressed tar files by their first bytes."""
_BLOCK = 1 << 20
_NAMES = (*(tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK), *(tarfile.XHDTYPE, tarfile.XGLTYPE), b"X")
"""Types of headers in tar files with names and attributes of the next member."""
_NAME_BYTES = 1 << 16
_ENCRYPTED = 0x1
"""Flag of an encrypted member of a zip file."""
UNREADABLE = (
    *(zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, OSError, ValueError),
    # Raised by zipfile for features that it lacks, and by tarfile for nested headers.
    *(NotImplementedError, RecursionError),
)
"""Errors of the libraries about damaged archives."""


class SafeZip(zipfile.ZipFile):
    """Zip file whose members can be read within a limit; only deflate is unpacked in steps.

    Args:
        source: The file, or its content.

    Raises:
        BadZipFile: The file is damaged, or a member is compressed by another method.
    """

    def __init__(self, source: Path | IO[bytes]) -> None:
        super().__init__(source)
        for entry in self.infolist():
            if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                self.close()
                raise zipfile.BadZipFile(f"'{entry.filename}' is not compressed by deflate")


class _SafeTarInfo(tarfile.TarInfo):
    """Header in a tar file. Headers with names or attributes are read whole; their size is limited."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        found = super().frombuf(buf, encoding, errors)
        if found.type in _NAMES and found.size > _NAME_BYTES:
            raise tarfile.ReadError(f"a name of {found.size} bytes")
        return found


def unpack(path: Path, folder: Path, *, is_wanted: Callable[[PurePosixPath], bool], limit: int) -> None:
    """Unpack some files of an archive into a new folder.

    Args:
        path: A zip file, a Python wheel, or a tar file.
        folder: The folder; it is made with the first file.
        is_wanted: Decides by its path which file is unpacked.
        limit: Largest size of the unpacked files [bytes].

    Raises:
        InputError: The file is not an archive, has members outside of its folder, or exceeds the limits.
    """
    total, names = 0, set()
    try:
        for name, size, packed, content in _members(path, is_wanted):
            place = _checked(path, name)
            if not is_wanted(place):
                continue
            total += size
            if total > limit:
                raise _refusal(path, f"unpacks to more than {limit >> 30} GiB", "give its folders one by one")
            if size > _SMALL and packed and size > _RATIO * packed:
                raise _refusal(
                    path, f"'{name}' unpacks to {size // packed} times its size", "unpack it by hand if you trust it"
                )
            if place in names:
                raise _refusal(path, f"contains '{name}' twice", "create the archive again")
            names.add(place)
            target = folder / place
            target.parent.mkdir(parents=True, exist_ok=True)
            _copy(content, target, size, path)
    except UNREADABLE as error:
        raise _refusal(path, f"cannot be unpacked: {error}".split("\n")[0], "download it again") from None


def _members(path: Path, is_wanted: Callable[[PurePosixPath], bool]) -> Iterator[tuple[str, int, int, IO[bytes]]]:
    """Yield name, size, packed size (0 if unknown) and content of each file."""
    if path.name.lower().endswith((".zip", ".whl")):
        with SafeZip(path) as archive:
            entries = archive.infolist()
            _count(path, len(entries))
            for entry in entries:
                mode = entry.external_attr >> 16
                if stat.S_ISLNK(mode):
                    raise _refusal(path, f"'{entry.filename}' is a link", "create the archive without links")
                if not entry.is_dir() and is_wanted(_checked(path, entry.filename)):
                    if entry.flag_bits & _ENCRYPTED:
                        raise _refusal(path, f"'{entry.filename}' needs a password", "unpack it by hand")
                    with archive.open(entry) as content:
                        yield entry.filename, entry.file_size, entry.compress_size, content
        return
    with path.open("rb") as raw:
        begin = raw.read(6)
    # Left to itself, tarfile tries all decompressors, and lzma reads a file of zeros as endless empty streams.
    form: Literal["r:", "r:gz", "r:bz2", "r:xz"] = "r:"
    for magic, compressed in _COMPRESSIONS.items():
        form = compressed if begin.startswith(magic) else form
    before, plain = 0, form == "r:"
    with tarfile.open(path, form, tarinfo=_SafeTarInfo) as archive:
        for number, entry in enumerate(archive):
            _count(path, number)
            if entry.issym() or entry.islnk() or entry.isdev() or entry.issparse():
                raise _refusal(
                    path, f"'{entry.name}' is a link, a device or a sparse file", "create the archive without it"
                )
            before += entry.size
            if not plain and before > _SMALL and before > _RATIO * path.stat().st_size:
                raise _refusal(
                    path, f"unpacks to more than {_RATIO} times its size", "unpack it by hand if you trust it"
                )
            if entry.isfile() and (content := archive.extractfile(entry)) is not None:
                yield entry.name, entry.size, 0, content


def _checked(path: Path, name: str) -> PurePosixPath:
    place = PurePosixPath(name)
    if "\\" in name or "\0" in name or place.is_absolute() or ".." in place.parts or ":" in place.parts[:1]:
        raise _refusal(
            path, f"the path '{name}' leads out of the archive's folder", "create the archive again with relative paths"
        )
    return place


def _copy(content: IO[bytes], target: Path, size: int, path: Path) -> None:
    left = size
    with target.open("xb") as file:
        while block := content.read(_BLOCK):
            left -= len(block)
            if left < 0:
                raise _refusal(path, f"'{target.name}' is larger than it states", "create the archive again")
            file.write(block)


def _count(path: Path, number: int) -> None:
    if number > _MEMBERS:
        raise _refusal(path, f"contains more than {_MEMBERS:,} files", "give its folders one by one")


def _refusal(path: Path, what: str, instead: str) -> InputError:
    return InputError(what, where=str(path), instead=instead)
