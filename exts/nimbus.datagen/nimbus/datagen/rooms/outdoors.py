"""Images for rooms: the view out of windows, and a palette of colors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from nimbus.datagen.random_streams import generator
from nimbus.datagen.rooms.modeling import Color

_SIZE = 256
"""Side of the image of the view [px]."""
_DEFOCUS = 1.2
"""Standard deviation of the blur of the view [px]."""
CELL = 5
"""Side of a palette's cell [px]; bilinear sampling at its center does not reach a neighbor."""


@lru_cache(maxsize=16)
def paint_outdoors(seed: int) -> NDArray[np.uint8]:
    """Paint a sky with clouds, hazy hills, trees or houses, and ground.

    The image (H, W, 3) sRGB is shared, and therefore read-only. It is slightly out of focus, like a view from a window
    through a camera that is focused on a table.
    """
    rng = generator(seed, "outdoors")
    up = np.linspace(1, 0, _SIZE)[:, None]
    zenith = _between(rng, (0.45, 0.6, 0.8), (0.75, 0.85, 0.95))
    haze = _between(rng, (0.85, 0.88, 0.9), (0.97, 0.97, 0.97))
    image = haze + (zenith - haze) * np.clip(up * 1.6 - 0.6, 0, 1)[..., None] * np.ones((1, _SIZE, 1))
    clouds = np.clip(_noise(rng, (7, 14)) - rng.uniform(0.0, 0.6), 0, 1) * np.clip(3 * up - 1.4, 0, 1)
    image += 0.7 * clouds[..., None] * (0.98 - image)
    green = _between(rng, (0.2, 0.3, 0.14), (0.36, 0.44, 0.24))
    for layer in range(3):  # far hills first, near trees last
        near = (layer + 1) / 3
        line = 0.5 - 0.06 * layer + 0.05 * _noise(rng, 30 - 8 * layer)[0] + 0.02 * near * _noise(rng, 2.5)[0]
        leaves = green * (1 + 0.35 * near * _noise(rng, 1.5 + near)[..., None])
        image = np.where((up < line)[..., None], haze + (leaves - haze) * (0.3 + 0.6 * near), image)
    if rng.uniform() < 0.5:
        for _ in range(int(rng.integers(2, 6))):
            _paint_house(image, rng)
    ground = _between(rng, (0.33, 0.4, 0.22), (0.58, 0.57, 0.46)) * (1 + 0.12 * _noise(rng, (1, 9)))[..., None]
    image = np.where((up < 0.27 + 0.01 * _noise(rng, 20)[0])[..., None], ground * (0.75 + 0.9 * up[..., None]), image)
    image = ndimage.gaussian_filter(image, (_DEFOCUS, _DEFOCUS, 0), mode="nearest")
    pixels = np.rint(np.clip(image, 0, 1) * 255).astype(np.uint8)
    pixels.setflags(write=False)
    return pixels


def _between(rng: np.random.Generator, one: Color, other: Color) -> NDArray[np.float64]:
    """Draw a color (3,) between two colors. The fraction is nearly equal in all channels, so that gray stays gray."""
    share = 0.8 * rng.uniform() + 0.2 * rng.uniform(0, 1, 3)
    return np.array(one) + share * np.subtract(other, one)


def _noise(rng: np.random.Generator, smoothness: float | tuple[float, float]) -> NDArray[np.float64]:
    """Return smooth noise (H, W) of standard deviation 1."""
    values = ndimage.gaussian_filter(rng.standard_normal((_SIZE, _SIZE)), smoothness, mode="wrap")
    return values / values.std()


def _paint_house(image: NDArray[np.float64], rng: np.random.Generator) -> None:
    """Paint a wall with rows of windows into an image, darker on one side."""
    width, height = int(rng.integers(_SIZE // 10, _SIZE // 4)), rng.uniform(0.16, 0.42)
    left = int(rng.integers(0, _SIZE - width))
    top, bottom = round((1 - 0.26 - height) * _SIZE), round((1 - 0.26) * _SIZE)
    wall = image[top:bottom, left : left + width]
    wall[:] = _between(rng, (0.5, 0.46, 0.42), (0.82, 0.76, 0.7))
    wall[:, : width // 3] *= 0.8
    rows, columns = np.indices(wall.shape[:2])
    floor, bay = int(rng.integers(14, 20)), int(rng.integers(9, 14))
    glass = (rows % floor > floor // 3) & (rows % floor < floor - 3) & (columns % bay > 2) & (columns % bay < bay - 2)
    wall[glass] = _between(rng, (0.3, 0.34, 0.38), (0.5, 0.56, 0.62))


def palette_image(colors: Sequence[Color]) -> NDArray[np.uint8]:
    """Paint a row of cells, one for each color: (5, 5 n, 3) sRGB."""
    row = np.rint(np.array(colors) * 255).astype(np.uint8)
    return np.repeat(np.repeat(row[None], CELL, axis=1), CELL, axis=0)
