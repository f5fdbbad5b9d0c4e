"""Bytes of image files, whose paths may come from an untrusted dataset."""

from __future__ import annotations

from pathlib import Path

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.bounded import read_bytes


def read_image_bytes(path: Path, *, limit: int) -> bytes:
    """Read an image file whole.

    Raises:
        InputError: The file cannot be read, is not a regular file, or is larger than the limit [bytes].
    """
    try:
        return read_bytes(path, limit=limit)
    except InputError as error:
        what = error.what.removeprefix("cannot be read: ").lower()
        raise InputError(what, where=str(path), instead="give a readable file") from None
