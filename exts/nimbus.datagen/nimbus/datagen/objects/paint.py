"""Layers of a texture that are plain stuff: colour, wear and dirt."""

from __future__ import annotations

from typing import Literal

import numpy as np

from nimbus.datagen.objects.canvas import Canvas, Palette, blend, rgb, rough
from nimbus.datagen.quantities import Range, Ratio
from nimbus.datagen.strict_yaml import StrictModel


class Plain(StrictModel):
    """One colour of a palette, slightly uneven."""

    paint: Literal["plain"]
    on: str = "all"
    colors: Palette
    uneven: Ratio = 0.04

    def apply(self, canvas: Canvas, rng: np.random.Generator) -> None:
        """Fill the region."""
        window = canvas.window(self.on)
        window[:] = rgb(self.colors[rng.integers(len(self.colors))])
        window *= 1 + self.uneven * rough(rng, window.shape[:2], (4, 4))[..., None]


class Dirt(StrictModel):
    """Stains, drips and scuffs."""

    paint: Literal["dirt"]
    on: str = "all"
    colors: Palette = ("#3b2a1a", "#2d2b28", "#5a4326")
    amount: Range[Ratio] = (0.1, 0.5)

    def apply(self, canvas: Canvas, rng: np.random.Generator) -> None:
        """Darken where a noise rises above a threshold that follows the amount."""
        window = canvas.window(self.on)
        amount = rng.uniform(*self.amount)
        field = rough(rng, window.shape[:2], (3, 4), 4)
        stain = np.clip((field - 0.55 + 0.5 * amount) * 3, 0, 1) * (0.35 + 0.4 * amount)
        blend(window, rgb(self.colors[rng.integers(len(self.colors))]), stain)
