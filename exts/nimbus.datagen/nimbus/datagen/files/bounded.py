"""Safe reading of files from other sources: they must be regular, bounded in size, and of the declared type.

All readers of datasets use it: :func:`check_regular` before a library opens a file by its path, :func:`read_text` for
whole texts, :func:`read_typed` for JSON. The number types limit the fields of dataclasses that such files are parsed
into; msgspec checks them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from stat import S_ISREG
from typing import Annotated, Any, TypeVar

from msgspec import Meta

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.codec import from_plain, parse_json

T = TypeVar("T")

_MARKS = ("dataset.json", "ledger.sqlite", "manifest.parquet", "meta/info.json", "improvement.json")
"""Names of files that make a folder a dataset or an improvement."""
TEXT_BYTES = 64 << 20
"""Largest text that is read whole [bytes]; descriptions of large datasets, such as ``dataset.json``, have some MB."""
FILE_BYTES = 1 << 40
"""Largest file that is read in parts [bytes]."""
_HOLES, _LEAST_HOLES = 1000, 1 << 28
"""Ratio of a file's size to its space on the disk, and size [bytes], at and above which a file counts as sparse. A
sparse file is made in a moment, but reading it may take hours. Compressing file systems do not reach this ratio."""
_BLOCK = 512
"""Unit of ``st_blocks`` [bytes]."""
_DENSE, _LEAST_DENSE = 20, 1 << 30
"""Ratio of the total size of files to their space on the disk, and total size [bytes], at and above which files are not
copied."""
RESTORE = "restore it from a copy"

Count = Annotated[int, Meta(ge=0, le=2**53)]
"""Number of things; up to this limit, every whole number is exact as a double, the number type of most JSON readers."""
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
"""Whole number that SQLite can store."""
Index = Annotated[int, Meta(ge=-1, le=2**53)]
"""Index of a thing; -1 for none."""
Pixels = Annotated[int, Meta(ge=1, le=16_384)]
"""Side of an image [px]."""
Rate = Annotated[float, Meta(ge=0.0, le=100_000.0)]
"""Rate of frames or steps [Hz]; 0 when unknown."""
Seconds = Annotated[float, Meta(ge=0.0, le=1e11)]
"""Duration, or time since 1970 [s]."""
Finite = Annotated[float, Meta(ge=-1e300, le=1e300)]
"""Finite number; with any limit, msgspec also refuses NaN."""


def check_own_file(path: Path) -> None:
    """Refuse a file of a dataset that leads out of it through a link; the file that a reader opens may be private.

    A file that is in no dataset is one that the user has named. A linked folder may be a dataset itself, so all folders
    above the file are compared.

    Raises:
        InputError: The file, or a folder above it, is a link out of the dataset.
        ValueError: The path has a null character.
    """
    real, named = os.path.realpath(path), os.path.abspath(path)
    for folder in Path(named).parents if real != named else ():
        if is_dataset(folder) and not real.startswith(os.path.realpath(folder).rstrip(os.sep) + os.sep):
            instead = "put a copy of the file in its place"
            raise InputError("leads out of the dataset", where=str(path), instead=instead)


def is_dataset(folder: Path) -> bool:
    """Return True if a folder contains a file that only datasets and improvements have, also as a broken link."""
    return any(os.path.lexists(folder / mark) for mark in _MARKS)


def check_regular(path: Path, *, limit: int = FILE_BYTES) -> int:
    """Refuse anything but a regular file, before a library would block on a pipe or read a device.

    Returns:
        Its size [bytes].

    Raises:
        InputError: The file is missing, not a regular file, or larger than the limit [bytes], or it is a link out of a
            dataset.
    """
    try:
        check_own_file(path)
        state = path.stat()
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None
    return _checked(path, state, limit)


def real_path(path: Path) -> Path:
    """Return an absolute path without links, like ``Path.resolve``, which fails for links that lead in a circle."""
    return Path(os.path.realpath(path))


def is_file_below(path: Path, root: Path) -> bool:
    """Return True if a path leads to an existing file below a folder, also through links.

    The path may have a name from a foreign file, which can be too long for a path, or contain a null character.
    """
    try:
        return real_path(path).is_relative_to(real_path(root)) and path.is_file()
    except (OSError, ValueError):
        return False


def check_dense(folder: Path, paths: Iterable[Path]) -> None:
    """Refuse files that are mostly holes before they are copied: the copy would fill the disk.

    Args:
        folder: Folder of the files, for the error.
        paths: The files.

    Raises:
        InputError: The files have more than 1 GiB together, and 20 times their space on the disk.
    """
    size = space = 0
    for path in paths:
        state = path.stat()
        size, space = size + state.st_size, space + getattr(state, "st_blocks", 0) * _BLOCK
    if space and size > max(_LEAST_DENSE, _DENSE * space):  # some file systems report no space
        what = f"files of {size / 1e9:.1f} GB take only {space / 1e9:.3f} GB on the disk, so they are mostly holes"
        raise InputError(what, where=str(folder), instead="remove the sparse files")


def read_bytes(path: Path, *, limit: int = TEXT_BYTES, follow: bool = True) -> bytes:
    """Read a regular file whole.

    Args:
        path: The file.
        limit: Largest size of the file [bytes].
        follow: Accept a symbolic link, unless it leads out of a dataset.

    Raises:
        InputError: The file cannot be read, is not a regular file, is larger than the limit, or is a link out of a
            dataset.
    """
    # With O_NONBLOCK a pipe is opened at once and then refused; without it, opening would wait for a writer.
    flags = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0)
    try:
        check_own_file(path)
        descriptor = os.open(path, flags | (0 if follow else getattr(os, "O_NOFOLLOW", 0)))
        with os.fdopen(descriptor, "rb") as file:
            _checked(path, os.fstat(descriptor), limit)
            return file.read(os.fstat(descriptor).st_size)
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None


def read_text(path: Path, *, limit: int = TEXT_BYTES, follow: bool = True) -> str:
    """Read a regular file of UTF-8 text whole.

    Raises:
        InputError: The file cannot be read, is not a regular file, is not text, or is larger than the limit.
    """
    try:
        return read_bytes(path, limit=limit, follow=follow).decode()
    except UnicodeDecodeError as error:
        raise InputError(f"not a UTF-8 text: byte {error.start}", where=str(path), instead=RESTORE) from None


def read_plain(path: Path, *, limit: int = TEXT_BYTES) -> Any:
    """Read a file of JSON as plain values that can be written again.

    Raises:
        InputError: The file cannot be read, or is not JSON.
    """
    return parse_plain(read_text(path, limit=limit), where=str(path))


def parse_plain(text: str, *, where: str) -> Any:
    """Parse JSON from another source.

    Raises:
        InputError: The text is not JSON, is nested too deeply, or has half a surrogate pair, which cannot be written.
    """
    try:
        value = parse_json(text)
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise InputError(f"cannot be read: {error}".split("\n")[0], where=where, instead=RESTORE) from None
    return value


def read_typed(kind: type[T], path: Path, *, limit: int = TEXT_BYTES) -> T:
    """Read a file of JSON into a dataclass with its limits; fields that it does not have are ignored.

    Raises:
        InputError: The file cannot be read, or its values do not fit ``kind``.
    """
    return as_typed(kind, read_plain(path, limit=limit), where=str(path))


def as_typed(kind: type[T], value: object, *, where: str) -> T:
    """Convert plain values from another source into a dataclass with its limits.

    Raises:
        InputError: The values do not fit ``kind``.
    """
    try:
        return from_plain(kind, value)
    except ValueError as error:
        raise InputError(str(error), where=where, instead=RESTORE) from None


def _checked(path: Path, state: os.stat_result, limit: int) -> int:
    if not S_ISREG(state.st_mode):
        raise InputError("is not a regular file", where=str(path), instead=RESTORE)
    if state.st_size > limit:
        raise InputError(f"{state.st_size} bytes; the limit is {limit}", where=str(path), instead=RESTORE)
    if state.st_size >= _LEAST_HOLES and state.st_blocks * 512 * _HOLES < state.st_size:
        raise InputError(
            f"{state.st_size} bytes, but the file is sparse and nearly empty", where=str(path), instead=RESTORE
        )
    return state.st_size


def _unreadable(path: Path, error: Exception) -> InputError:
    reason = error.strerror if isinstance(error, OSError) else error
    return InputError(f"cannot be read: {reason}", where=str(path), instead=RESTORE)
