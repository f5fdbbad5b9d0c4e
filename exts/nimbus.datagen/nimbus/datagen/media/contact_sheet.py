"""Contact sheets: images that show rows of pictures of equal height, with captions."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

PAPER, INK, FAINT = (250, 250, 248), (32, 32, 36), (120, 120, 128)
_GAP, _MARGIN, _CAPTION, _LABEL_LINE = 4, 20, 30, 13
"""Gap between pictures, margin of the sheet, height of a caption, height of a line of a label [px]."""


@dataclass(frozen=True, kw_only=True)
class SheetRow:
    """One row of a contact sheet."""

    pictures: Sequence[NDArray[np.uint8]]
    """Pictures of any size, each (H, W, 3) sRGB."""
    caption: str = ""
    """Text above the row, at the left."""
    note: str = ""
    """Text above the row, at the right, in a fainter color."""
    labels: Sequence[tuple[str, ...]] = ()
    """Lines of text below each picture; empty for none."""


def draw_contact_sheet(rows: Sequence[SheetRow], *, tile_height: int = 150) -> Image.Image:
    """Draw a contact sheet.

    Args:
        rows: Rows from top to bottom; without rows, the sheet consists of its margins.
        tile_height: Height to which every picture is scaled [px].
    """
    tiles = [[_resize(picture, tile_height) for picture in row.pictures] for row in rows]
    width = max((sum(tile.width + _GAP for tile in row) for row in tiles), default=0) - _GAP + 2 * _MARGIN
    sheet = Image.new("RGB", (width, _MARGIN + sum(_height(row, tile_height) for row in rows)), PAPER)
    draw = ImageDraw.Draw(sheet)
    top = _MARGIN
    for row, pictures in zip(rows, tiles, strict=True):
        room = width - 2 * _MARGIN - round(load_font(13).getlength(drawable(row.note))) - (20 if row.note else 0)
        draw.text((_MARGIN, top), fit_text(row.caption, room, size=17), font=load_font(17), fill=INK)
        draw.text((width - _MARGIN, top + 2), drawable(row.note), font=load_font(13), fill=FAINT, anchor="ra")
        left, tile_top = _MARGIN, top + _caption_height(row)
        for number, tile in enumerate(pictures):
            sheet.paste(tile, (left, tile_top))
            for line, text in enumerate(row.labels[number] if row.labels else ()):
                place = (left, tile_top + tile_height + 1 + line * _LABEL_LINE)
                draw.text(place, drawable(text), font=load_font(11), fill=FAINT if line else INK)
            left += tile.width + _GAP
        top += _height(row, tile_height)
    return sheet


def drawable(text: str) -> str:
    """Return a text without accents, because Pillow's font has no accented letters."""
    return "".join(letter for letter in unicodedata.normalize("NFKD", text) if not unicodedata.combining(letter))


def fit_text(text: str, width: int, *, size: int) -> str:
    """Return a text without accents, shortened with dots if it is too wide.

    Args:
        text: Text to draw.
        width: Available width [px].
        size: Size of the letters [px].
    """
    shown, font = drawable(text), load_font(size)
    if font.getlength(shown) <= width:
        return shown
    while shown and font.getlength(f"{shown} ...") > width:
        shown = shown[:-1]
    return f"{shown.rstrip()} ..."


@cache
def load_font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """Load Pillow's own font.

    Args:
        size: Size of the letters [px].
    """
    return ImageFont.load_default(size=size)


def _caption_height(row: SheetRow) -> int:
    return _CAPTION if row.caption or row.note else 0


def _height(row: SheetRow, tile_height: int) -> int:
    labels = max((len(lines) for lines in row.labels), default=0) * _LABEL_LINE
    return _caption_height(row) + tile_height + labels + _MARGIN


def _resize(picture: NDArray[np.uint8], height: int) -> Image.Image:
    image = Image.fromarray(picture)
    return image.resize((round(image.width * height / image.height), height), Image.Resampling.LANCZOS)
