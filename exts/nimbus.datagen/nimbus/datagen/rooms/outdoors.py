"""Pictures for rooms: the day outside the windows, and a palette of colors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.random_streams import generator
from nimbus.datagen.rooms.modeling import Color

_SIZE = 128
"""[px] Side of the picture of the day outside."""
CELL = 5
"""[px] Side of a palette's cell; bilinear sampling at its middle sees no neighbor."""


@lru_cache(maxsize=16)
def paint_outdoors(seed: int) -> NDArray[np.uint8]:
    """Paint sky, trees or houses and ground (H, W, 3) sRGB; shared, so never written to."""
    rng = generator(seed, "outdoors")
    up = np.linspace(1, 0, _SIZE)[:, None, None]
    zenith, horizon = (
        rng.uniform((0.45, 0.6, 0.8), (0.75, 0.85, 0.95)),
        rng.uniform((0.85, 0.88, 0.9), (0.97, 0.97, 0.97)),
    )
    image = np.repeat(horizon + (zenith - horizon) * np.clip(up * 1.6 - 0.6, 0, 1), _SIZE, axis=1)
    columns = np.arange(_SIZE)
    waves = [np.sin(columns / _SIZE * k * 2 * np.pi + rng.uniform(0, 2 * np.pi)) / k for k in (1, 2, 5, 9, 17)]
    line = 0.42 + 0.03 * np.sum(waves, axis=0)
    if rng.uniform() < 0.5:
        for _ in range(int(rng.integers(3, 7))):
            start, width = int(rng.integers(0, _SIZE)), int(rng.integers(10, 36))
            line[start : start + width] = rng.uniform(0.45, 0.75)
        color = rng.uniform((0.45, 0.42, 0.4), (0.7, 0.64, 0.6))
    else:
        color = rng.uniform((0.25, 0.36, 0.2), (0.42, 0.5, 0.3))
    height = np.broadcast_to(up[..., 0], (_SIZE, _SIZE))
    image[height < line] = color
    image[height < 0.3] = rng.uniform((0.35, 0.42, 0.25), (0.6, 0.6, 0.5))
    image += rng.normal(0, 0.012, (_SIZE, _SIZE, 1))
    pixels = np.rint(np.clip(image, 0, 1) * 255).astype(np.uint8)
    pixels.setflags(write=False)
    return pixels


def palette_image(colors: Sequence[Color]) -> NDArray[np.uint8]:
    """Paint one cell for each color in a row: (5, 5 n, 3) sRGB."""
    row = np.rint(np.array(colors) * 255).astype(np.uint8)
    return np.repeat(np.repeat(row[None], CELL, axis=1), CELL, axis=0)
