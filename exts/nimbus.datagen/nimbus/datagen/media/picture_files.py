"""Reading of image files from untrusted sources: in this process, Pillow decodes only a few safe formats."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import IO

from PIL import Image

FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TGA", "TIFF", "WEBP")
"""Formats that Pillow decodes itself. Others can be unsafe: for EPS files, Pillow starts Ghostscript."""


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
