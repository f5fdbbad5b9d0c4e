"""Mipmaps, so that distant surfaces do not flicker."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.render.raytracer.kernel_data import LEVELS


@dataclass(frozen=True, kw_only=True)
class Mipmap:
    """All levels of one texture, one after another in memory."""

    width: int
    height: int
    texels: NDArray[np.uint32]
    """Packed RGB, the largest level first."""
    starts: NDArray[np.int64]
    """First texel of each level."""


def mipmap(image: NDArray[np.uint8]) -> Mipmap:
    """Halve an image (H, W, 3) by averaging until one side is a single texel."""
    sizes = [image[..., :3]]
    while len(sizes) < LEVELS and min(sizes[-1].shape[:2]) > 1:
        large = sizes[-1]
        height, width = large.shape[0] // 2, large.shape[1] // 2
        even = large[: 2 * height, : 2 * width].astype(np.uint16)
        # Integers with rounding, so that every machine computes the same bytes; an odd last row or column is dropped.
        rows = even[::2] + even[1::2]
        sizes.append(((rows[:, ::2] + rows[:, 1::2] + 2) >> 2).astype(np.uint8))
    texels = [_packed(size) for size in sizes]
    return Mipmap(
        width=image.shape[1],
        height=image.shape[0],
        texels=np.concatenate(texels),
        starts=np.cumsum([0] + [len(size) for size in texels[:-1]]),
    )


def _packed(image: NDArray[np.uint8]) -> NDArray[np.uint32]:
    red, green, blue = np.moveaxis(image.astype(np.uint32), -1, 0)
    return (red | green << 8 | blue << 16).ravel()
