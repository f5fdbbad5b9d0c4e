"""Painting of a texture from layers, bottom to top."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated

import numpy as np
from pydantic import Field

from nimbus.datagen.arrays import ImageArray
from nimbus.datagen.objects.shapes.shape import TextureRegion
from nimbus.datagen.objects.textures.canvas import Canvas
from nimbus.datagen.objects.textures.label import Label
from nimbus.datagen.objects.textures.paint import Dirt, Gradient, Kernels, Plain, Ribs, Spots, Streaks

Layer = Annotated[Plain | Gradient | Streaks | Ribs | Spots | Kernels | Label | Dirt, Field(discriminator="paint")]


def painter(
    layers: tuple[Layer, ...],
    regions: Mapping[str, TextureRegion],
    *,
    size: tuple[int, int],
    rng: Callable[[], np.random.Generator],
    color: str = "#808080",
) -> Callable[[], ImageArray]:
    """Return a function that paints the texture of one variant on demand, equal on every call.

    Args:
        layers: Layers, as for :func:`paint`.
        regions: Regions, as for :func:`paint`.
        size: Size, as for :func:`paint`.
        rng: Function that returns the layers' random stream, from its start.
        color: Color of layers without colors.

    Raises:
        InputError: A layer is for a part that the shape does not have.
    """
    parts = Canvas((1, 1), regions, color)
    for layer in layers:
        parts.region(layer.on)
    return lambda: paint(layers, regions, size=size, rng=rng(), color=color)


def paint(
    layers: tuple[Layer, ...],
    regions: Mapping[str, TextureRegion],
    *,
    size: tuple[int, int],
    rng: np.random.Generator,
    color: str = "#808080",
) -> ImageArray:
    """Paint the texture (H, W, 3) of one variant.

    Args:
        layers: Layers, the first at the bottom.
        regions: Regions of the surface.
        size: Width and height [px].
        rng: Random stream for the layers alone.
        color: Color of layers without colors.
    """
    canvas = Canvas(size, regions, color)
    for layer in layers:
        layer.apply(canvas, rng)
    return canvas.image()
