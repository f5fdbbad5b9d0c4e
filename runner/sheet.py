"""A contact sheet of any dataset that can be checked: a row an episode and camera, from its beginning to its end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from nimbus.datagen.datasets.quality.finding import Finding, Unreadable
from nimbus.datagen.datasets.quality.view import EpisodeView, View

_TALL, _GAP, _MARGIN, _CAPTION = 120, 4, 16, 24
_PAPER, _INK = (250, 250, 248), (32, 32, 36)
_MOMENTS = 6


def contact_sheet(view: View, *, episodes: int = 6) -> Image.Image | None:
    """The sheet of the first episodes; None where no picture can be read.

    Args:
        view: The dataset.
        episodes: Of how many.
    """
    rows = [row for row in _rows(view, episodes) if row[1]]
    if not rows:
        return None
    width = max(sum(tile.width + _GAP for tile in tiles) for _, tiles in rows) + 2 * _MARGIN
    sheet = Image.new("RGB", (width, _MARGIN + len(rows) * (_CAPTION + _TALL + _GAP) + _MARGIN), _PAPER)
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(size=14)
    for place, (caption, tiles) in enumerate(rows):
        top, left = _MARGIN + place * (_CAPTION + _TALL + _GAP), _MARGIN
        draw.text((left, top + 2), caption, font=font, fill=_INK)
        for tile in tiles:
            sheet.paste(tile, (left, top + _CAPTION))
            left += tile.width + _GAP
    return sheet


def write_sheet(view: View, path: Path) -> bool:
    """Save the sheet; false where there is none."""
    sheet = contact_sheet(view)
    if sheet is not None:
        sheet.save(path, optimize=True)
    return sheet is not None


def _rows(view: View, episodes: int) -> Iterator[tuple[str, list[Image.Image]]]:
    shown = 0
    for clip in view.clips():
        if isinstance(clip, Finding):
            continue
        if shown == episodes:
            return
        shown += 1
        for camera in clip.images:
            yield f"{clip.name}, {camera}, {clip.length} frames", list(_tiles(clip, camera))


def _tiles(clip: EpisodeView, camera: str) -> Iterator[Image.Image]:
    moments = np.unique(np.linspace(0, clip.length - 1, _MOMENTS).round().astype(int)).tolist()
    try:
        for moment in moments:
            yield from (_tile(picture) for picture in clip.images[camera].read(moment, moment + 1))
    except Unreadable:  # what is damaged is for QA to tell
        return


def _tile(picture: NDArray[np.uint8]) -> Image.Image:
    image = Image.fromarray(picture)
    return image.resize((round(image.width * _TALL / image.height), _TALL), Image.Resampling.LANCZOS)
