"""Reading of image files from other people, limited to a few formats for all libraries of this process."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import IO

from PIL import Image

FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TGA", "TIFF", "WEBP")
"""Formats that Pillow decodes itself. Others are not safe: for EPS, Pillow starts the Ghostscript interpreter."""


def open_picture(source: Path | IO[bytes]) -> Image.Image:
    """Open an image in one of :data:`FORMATS`; Pillow decodes its pixels on first access.

    Raises:
        OSError: The file is not an image, or has another format.
    """
    limit_formats()
    return Image.open(source, formats=FORMATS)


@cache
def limit_formats() -> None:
    """Remove all other formats from Pillow in this process, because mesh and scene readers open textures with it."""
    Image.init()
    Image.ID[:] = [name for name in Image.ID if name in FORMATS]
    for name in [name for name in Image.OPEN if name not in FORMATS]:
        del Image.OPEN[name]
