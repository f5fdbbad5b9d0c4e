"""Picture files that other users made: a few formats are read, whichever library reads them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import IO

from PIL import Image

FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TGA", "TIFF", "WEBP")
"""Formats that Pillow decodes by itself. It knows forty more; EPS among them starts Ghostscript, an interpreter."""


def open_picture(source: Path | IO[bytes]) -> Image.Image:
    """Open a picture of one of :data:`FORMATS`; its pixels are read when they are asked for.

    Raises:
        OSError: The file is not an image, or of another format.
    """
    limit_formats()
    return Image.open(source, formats=FORMATS)


@cache
def limit_formats() -> None:
    """Let Pillow forget all other formats in this process: readers of meshes and scenes open textures through it."""
    Image.init()
    Image.ID[:] = [name for name in Image.ID if name in FORMATS]
    for name in [name for name in Image.OPEN if name not in FORMATS]:
        del Image.OPEN[name]
