"""Canvas of a texture: regions in pixels, seeded noise and colors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import numpy as np
from PIL import Image as PillowImage
from pydantic import Field

from nimbus.datagen.arrays import FloatArray, ImageArray
from nimbus.datagen.errors import InputError, suggest
from nimbus.datagen.objects.shapes.shape import TextureRegion

Color = Annotated[str, Field(pattern=r"^#[0-9a-fA-F]{6}$")]
"""sRGB, ``#rrggbb``."""
_GREY = "#808080"
Palette = Annotated[tuple[Color, ...], Field(min_length=1)]


def rgb(color: str) -> FloatArray:
    """Return a color (3,) in [0, 1]."""
    return np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255


class Canvas:
    """Pixels of a texture with values in [0, 1], and its regions.

    Args:
        size: Width and height [px].
        regions: Regions by name, at least one; ``all`` is added, with the scale of the first.
        color: Color of layers without colors.
    """

    def __init__(self, size: tuple[int, int], regions: Mapping[str, TextureRegion], color: str = _GREY) -> None:
        self.color = color
        self.pixels = np.full((size[1], size[0], 3), 0.5)
        self._regions = {"all": _whole(next(iter(regions.values()))), **regions}

    def region(self, name: str) -> TextureRegion:
        """Return a region by name.

        Raises:
            InputError: The region does not exist.
        """
        try:
            return self._regions[name]
        except KeyError:
            raise InputError(f"this shape has no part '{name}'", instead=suggest(name, self._regions)) from None

    def window(self, name: str) -> FloatArray:
        """Return the pixels of a region as a view, row 0 at its top."""
        region = self.region(name)
        height, width = self.pixels.shape[:2]
        left, right = round(region.u[0] * width), round(region.u[1] * width)
        top, bottom = round((1 - region.v[1]) * height), round((1 - region.v[0]) * height)
        return self.pixels[top : max(bottom, top + 1), left : max(right, left + 1)]

    def image(self) -> ImageArray:
        """Return the finished texture."""
        return (np.clip(self.pixels, 0, 1) * 255 + 0.5).astype(np.uint8)


def _whole(part: TextureRegion) -> TextureRegion:
    width, height = part.u[1] - part.u[0], part.v[1] - part.v[0]
    return TextureRegion(u=(0.0, 1.0), v=(0.0, 1.0), size=(part.size[0] / width, part.size[1] / height))


def noise(rng: np.random.Generator, shape: tuple[int, int], cells: tuple[int, int]) -> FloatArray:
    """Return smooth noise (rows, columns) in [-1, 1]; its left and right edges match.

    Args:
        rng: Random stream.
        shape: Rows and columns [px].
        cells: Number of bumps from top to bottom, and from left to right.
    """
    down, across = max(cells[0], 1), max(cells[1], 1)
    grid = rng.uniform(-1, 1, (down + 3, across))
    grid = np.concatenate([grid, grid[:, :3]], axis=1).astype(np.float32)
    box = (1.0, 1.0, 1.0 + across, 1.0 + down)
    image = PillowImage.fromarray(grid).resize((shape[1], shape[0]), PillowImage.Resampling.BICUBIC, box=box)
    return np.clip(np.asarray(image, dtype=np.float64), -1, 1)


def rough(rng: np.random.Generator, shape: tuple[int, int], cells: tuple[int, int], octaves: int = 3) -> FloatArray:
    """Return noise (rows, columns) of several octaves in [-1, 1]."""
    layers = [noise(rng, shape, (cells[0] * 2**k, cells[1] * 2**k)) / 2**k for k in range(octaves)]
    return np.sum(layers, axis=0) / sum(1 / 2**k for k in range(octaves))


def blend(window: FloatArray, color: FloatArray, share: FloatArray | float) -> None:
    """Mix a color (3,) or an image into a window in place; the share is a number or (H, W)."""
    weight = np.asarray(share)[..., None] if np.ndim(share) else share
    window += (color - window) * weight
