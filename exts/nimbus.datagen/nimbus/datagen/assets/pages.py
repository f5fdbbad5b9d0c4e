"""Page of an asset: images of its sides and rest poses, and each decision with its reason and alternatives."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
from PIL import Image

from nimbus.datagen.arrays import FloatArray, ImageArray
from nimbus.datagen.assets.decisions import Decision
from nimbus.datagen.geometry.transforms import quat_from_axis_angle, quat_to_matrix
from nimbus.datagen.media.contact_sheet import SheetRow, draw_contact_sheet
from nimbus.datagen.media.pages import jpeg_uri, render_html
from nimbus.datagen.objects.model import ObjectModel
from nimbus.datagen.objects.portrait import portrait

PAGE_NAME, SHEET_NAME = "page.html", "sheet.png"
_TEMPLATE = Path(__file__).parent / "templates" / "asset.html.j2"
_PIXELS = 140
_RED, _BLUE = (220, 40, 30), (40, 90, 220)
"""sRGB colors of the marks for handles and for pressing points."""
_SIDES = {"front": 0.0, "right": np.pi / 2, "back": np.pi, "left": -np.pi / 2}
"""Rotations about z that turn a side to the camera [rad]."""


def write_page(
    folder: Path,
    title: str,
    subtitle: str,
    *,
    model: ObjectModel | None,
    refused: str,
    decisions: dict[str, Decision],
    found: dict[str, str],
    notes: Iterable[str],
) -> None:
    """Write ``page.html``, and ``sheet.png`` if there is a model; equal assets give equal bytes."""
    picture = ""
    if model is not None:
        sheet = _sheet(model)
        sheet.save(folder / SHEET_NAME, format="PNG")
        picture = jpeg_uri(np.asarray(sheet))
    values = {"refused": refused, "decisions": decisions, "found": found, "notes": tuple(notes), "picture": picture}
    page = render_html(_TEMPLATE, title=title, subtitle=subtitle, **values)
    (folder / PAGE_NAME).write_text(page, encoding="utf-8")


def _sheet(model: ObjectModel) -> Image.Image:
    """Draw the sides in a first row, and the rest poses in a second row."""
    if model.parts:
        return draw_contact_sheet(_rows_of_parts(model), tile_height=_PIXELS)
    sides = [_turned(model, quat_to_matrix(quat_from_axis_angle((0, 0, 1), turn))) for turn in _SIDES.values()]
    rests = [_turned(model, quat_to_matrix(pose.wxyz)) for pose in model.rest_poses]
    margins = [(pose.name, f"tips at {np.rad2deg(pose.tilt_margin):.0f}°") for pose in model.rest_poses]
    rows = [
        SheetRow(pictures=sides, caption=model.kind, note=model.category, labels=[(name,) for name in _SIDES]),
        SheetRow(pictures=rests, labels=margins),
    ]
    return draw_contact_sheet(rows, tile_height=_PIXELS)


def _rows_of_parts(model: ObjectModel) -> list[SheetRow]:
    """Draw the object closed, half open and open, and each part with its handles."""
    shares = {"closed": 0.0, "half open": 0.5, "open": 1.0}
    pictures = [portrait(model, pixels=_PIXELS, opening=share) for share in shares.values()]
    side = portrait(model, pixels=_PIXELS, opening=0.5, turn=np.pi / 2 + np.deg2rad(55), rise=np.deg2rad(20))
    labels = [(name,) for name in (*shares, "from behind")]
    rows = [SheetRow(pictures=[*pictures, side], caption=model.kind, note=model.category, labels=labels)]
    marked = []
    for part in model.parts:
        red = [(part.joint.origin + handle.position, _RED) for handle in part.handles]
        blue = [(part.joint.origin + place.position, _BLUE) for place in part.pressings]
        marked.append(portrait(model, pixels=_PIXELS, opening=0.0, marks=[*blue, *red]))
    names = [(part.name, "handles red, pressing points blue") for part in model.parts]
    return [*rows, SheetRow(pictures=marked, labels=names)]


def _turned(model: ObjectModel, turn: FloatArray) -> ImageArray:
    vertices, normals = model.vertices @ turn.T, model.normals @ turn.T
    return portrait(replace(model, vertices=vertices, normals=normals), pixels=_PIXELS)
