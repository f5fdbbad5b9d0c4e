"""Color names of an asset, measured on its surface."""

from __future__ import annotations

import colorsys
from collections import Counter

from nimbus.datagen.arrays import ImageArray
from nimbus.datagen.geometry.coverage import sample_surface
from nimbus.datagen.geometry.drawing import sample_texture
from nimbus.datagen.objects.prepared.shape_file import AssetShape

COLORS = ("black", "white", "gray", "red", "orange", "brown", "yellow", "green", "blue", "purple", "pink")
_PLACES = 2000
"""Number of sampled surface points."""
_SHARE = 0.25
"""Smallest fraction of the surface at which a second color is named."""
_HUES = ((15, "red"), (45, "orange"), (70, "yellow"), (165, "green"), (260, "blue"), (305, "purple"), (345, "pink"))
"""Upper bound of the hue of each name [deg]."""


def measure_colors(shape: AssetShape) -> tuple[str, ...]:
    """Name the one or two main colors of a surface; the second must cover more than a quarter of it."""
    corners = shape.vertices[shape.faces]
    _, face = sample_surface(corners, _PLACES)
    middles = shape.uvs[shape.faces[face]].mean(axis=1)
    counts = Counter(map(name_color, sample_texture(shape.texture, middles)))
    return tuple(
        name for number, (name, count) in enumerate(counts.most_common(2)) if not number or count > _SHARE * len(face)
    )


def name_color(rgb: ImageArray) -> str:
    """Return the name of a color (3,) sRGB from 0 to 255."""
    red, green, blue = (float(value) / 255 for value in rgb[:3])
    hue, saturation, value = colorsys.rgb_to_hsv(red, green, blue)
    if value < 0.2:
        return "black"
    if saturation < 0.18:
        return "white" if value > 0.8 else "gray"
    name = next((word for end, word in _HUES if 360 * hue < end), "red")
    return "brown" if name in ("orange", "red") and value < 0.65 and saturation < 0.9 and hue > 0.015 else name
