"""Reading of image files from untrusted sources: in this process, Pillow decodes only a few safe formats."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import IO, Any

from PIL import Image

FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TGA", "TIFF", "WEBP")
"""Formats that Pillow decodes itself. Others can be unsafe: for EPS files, Pillow starts Ghostscript."""
_MOST_SCANS = 100
"""Largest number of scans of a JPEG; each of them changes all pixels. Usual files have at most 13."""
_LARGEST_JPEG = 1 << 28
_MARKER = re.compile(rb"\xff+([^\x00\xff\xd0-\xd7])", re.DOTALL)
"""A marker of a JPEG that is neither part of the pixels nor between them."""
_START_OF_IMAGE, _END_OF_IMAGE, _START_OF_SCAN = 0xD8, 0xD9, 0xDA


def open_picture(source: Path | IO[bytes]) -> Image.Image:
    """Open an image in one of :data:`FORMATS`; its pixels are decoded on first access.

    Raises:
        OSError: The file is not an image, or has another format.
    """
    limit_formats()
    return Image.open(source, formats=FORMATS)


@cache
def limit_formats() -> None:
    """Remove all formats outside :data:`FORMATS` from Pillow in this process.

    Libraries that read meshes and scenes also open textures with Pillow, and are limited in this way.
    """
    Image.init()
    Image.ID[:] = [name for name in Image.ID if name in FORMATS]
    for name in [name for name in Image.OPEN if name not in FORMATS]:
        del Image.OPEN[name]
    make, accepts = Image.OPEN["JPEG"]

    def make_checked(file: IO[bytes], name: str | bytes) -> Any:
        _check_scans(file)
        return make(file, name)

    Image.OPEN["JPEG"] = make_checked, accepts


def _check_scans(file: IO[bytes]) -> None:
    """Refuse a JPEG with more scans than a program writes; an empty one has 200 bytes, and takes time for all pixels.

    Raises:
        OSError: It has more, or the file is too large.
    """
    data = file.read(_LARGEST_JPEG + 1)
    file.seek(0)
    if len(data) > _LARGEST_JPEG:
        raise OSError(f"a JPEG of more than {_LARGEST_JPEG >> 20} MiB")
    scans = at = 0
    while (found := _MARKER.search(data, at)) and (kind := found[1][0]) != _END_OF_IMAGE:
        scans += kind == _START_OF_SCAN
        if scans > _MOST_SCANS:
            raise OSError(f"a JPEG of more than {_MOST_SCANS} scans")
        at = found.end()
        if kind != _START_OF_IMAGE:
            at += int.from_bytes(data[at : at + 2], "big")
