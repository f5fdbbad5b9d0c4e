"""Layers of a texture: plain color, gradients, streaks, ribs, spots, kernels and dirt."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from PIL import Image as PillowImage
from PIL import ImageDraw, ImageFilter
from pydantic import Field

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.files.quantities import Metres, Range, Ratio
from nimbus.datagen.files.strict_yaml import StrictModel
from nimbus.datagen.objects.textures.canvas import Canvas, Palette, blend, noise, rgb, rough

Count = Annotated[int, Field(ge=0, le=3000)]


class Plain(StrictModel):
    """Slightly uneven color from a palette, or the kind's color."""

    paint: Literal["plain"]
    on: str = "all"
    colors: Palette | None = None
    uneven: Ratio = 0.04

    def apply(self, canvas: Canvas, rng: np.random.Generator) -> None:
        """Fill the region with one color."""
        window, colors = canvas.window(self.on), self.colors or (canvas.color,)
        window[:] = rgb(colors[rng.integers(len(colors))])
        window *= 1 + self.uneven * rough(rng, window.shape[:2], (4, 4))[..., None]


class Gradient(StrictModel):
    """Colors from the lower to the upper edge, from one of several palettes."""

    paint: Literal["gradient"]
    on: str = "all"
    palettes: Annotated[tuple[Palette, ...], Field(min_length=1)]
    uneven: Ratio = 0.06
    waver: Ratio = Field(default=0.06, description="unevenness of the color transitions")

    def apply(self, canvas: Canvas, rng: np.random.Generator) -> None:
        """Fill the region with a gradient."""
        window = canvas.window(self.on)
        stops = np.array([rgb(color) for color in self.palettes[rng.integers(len(self.palettes))]])
        height = np.linspace(1, 0, window.shape[0])[:, None]
        height = np.clip(height + self.waver * rough(rng, window.shape[:2], (3, 5)), 0, 1)
        places = np.linspace(0, 1, len(stops))
        window[:] = np.stack([np.interp(height, places, stops[:, channel]) for channel in range(3)], axis=-1)
        window *= 1 + self.uneven * rough(rng, window.shape[:2], (5, 6))[..., None]


class Streaks(StrictModel):
    """Soft streaks along or around the axis, such as reflections, grain, or rings of a root."""

    paint: Literal["streaks"]
    on: str = "all"
    colors: Palette
    count: Annotated[int, Field(ge=1, le=200)] = 9
    strength: Ratio = 0.4
    around: bool = False
    sharp: Annotated[float, Field(gt=0)] = 1.6

    def apply(self, canvas: Canvas, rng: np.random.Generator) -> None:
        """Blend the streaks over the canvas."""
        window = canvas.window(self.on)
        cells = (self.count, 2) if self.around else (2, self.count)
        field = np.clip(noise(rng, window.shape[:2], cells) * self.sharp, 0, 1)
        blend(window, rgb(self.colors[rng.integers(len(self.colors))]), field * self.strength)


class Ribs(StrictModel):
    """Regular shaded ridges, such as beads of a can, the grip of a cap, or crimped edges."""

    paint: Literal["ribs"]
    on: str
    count: Annotated[int, Field(ge=1, le=120)]
    strength: Ratio = 0.25
    around: bool = True

    def apply(self, canvas: Canvas, rng: np.random.Generator) -> None:
        """Lighten and darken the region alternately."""
        window = canvas.window(self.on)
        height, width = window.shape[:2]
        place = np.arange(height)[:, None] / height if self.around else np.arange(width)[None, :] / width
        window *= (1 + self.strength * np.sin(2 * np.pi * self.count * place))[..., None]


class Spots(StrictModel):
    """Round or stretched spots, such as pores, freckles, bruises or crumbs."""

    paint: Literal["spots"]
    on: str = "all"
    colors: Palette
    count: Range[Count]
    size: Range[Metres]
    strength: Ratio = 0.8
    soft: Ratio = Field(default=0.3, description="blur, as a fraction of the mean size")
    stretch: Annotated[float, Field(ge=0.1, le=12)] = Field(default=1.0, description="ratio of height to width")

    def apply(self, canvas: Canvas, rng: np.random.Generator) -> None:
        """Blend the spots over the canvas."""
        window, region = canvas.window(self.on), canvas.region(self.on)
        height, width = window.shape[:2]
        scale = np.array([width, height]) / np.array(region.size)
        mask = PillowImage.new("L", (width * 2, height * 2))
        pen = ImageDraw.Draw(mask)
        for _ in range(int(rng.integers(self.count[0], self.count[1] + 1))):
            center = rng.uniform(0, 2, 2) * (width, height)
            half = rng.uniform(*self.size) * scale * (self.stretch**-0.5, self.stretch**0.5)
            pen.ellipse([*(center - half).tolist(), *(center + half).tolist()], fill=int(rng.integers(150, 256)))
        blur = self.soft * float(np.mean(self.size)) * float(scale.mean()) * 2
        soft = mask.filter(ImageFilter.GaussianBlur(blur)).resize((width, height), PillowImage.Resampling.BOX)
        blend(window, rgb(self.colors[rng.integers(len(self.colors))]), _unit(soft) * self.strength)


class Kernels(StrictModel):
    """Rows of rounded grains, as on a corn cob; some are missing."""

    paint: Literal["kernels"]
    on: str = "all"
    colors: Palette
    gaps: Palette
    columns: Annotated[int, Field(ge=4, le=40)] = 14
    rows: Annotated[int, Field(ge=4, le=60)] = 26
    missing: Range[Ratio] = (0.0, 0.3)

    def apply(self, canvas: Canvas, rng: np.random.Generator) -> None:
        """Fill the region with grains."""
        window = canvas.window(self.on)
        height, width = window.shape[:2]
        column = np.arange(width)[None, :] / width * self.columns
        row = np.arange(height)[:, None] / height * self.rows + 0.5 * (np.floor(column) % 2)
        across, down = column % 1 - 0.5, row % 1 - 0.5
        dome = np.clip(1 - (np.abs(across) * 2) ** 3 - (np.abs(down) * 2) ** 3, 0, 1)
        grain = np.floor(row).astype(int) % self.rows, np.floor(column).astype(int) % self.columns
        palette = np.array([rgb(color) for color in self.colors])
        tint = palette[rng.integers(len(palette), size=(self.rows, self.columns))][grain]
        patch = rough(rng, (self.rows, self.columns), (3, 3))
        gone = (patch > np.quantile(patch, 1 - rng.uniform(*self.missing)))[grain]
        pit = rgb(self.gaps[rng.integers(len(self.gaps))])
        window[:] = np.where(
            gone[..., None], pit * (1.1 - 0.35 * dome[..., None]), tint * (0.55 + 0.5 * dome[..., None])
        )


class Dirt(StrictModel):
    """Stains and scuffs."""

    paint: Literal["dirt"]
    on: str = "all"
    colors: Palette = ("#3b2a1a", "#2d2b28", "#5a4326")
    amount: Range[Ratio] = (0.1, 0.5)

    def apply(self, canvas: Canvas, rng: np.random.Generator) -> None:
        """Darken areas in which noise exceeds a threshold that depends on the amount."""
        window = canvas.window(self.on)
        amount = rng.uniform(*self.amount)
        field = rough(rng, window.shape[:2], (3, 4), 4)
        stain = np.clip((field - 0.5 + 0.5 * amount) * 3, 0, 1) * (0.3 + 0.4 * amount)
        blend(window, rgb(self.colors[rng.integers(len(self.colors))]), stain)
        scuff = np.clip((rough(rng, window.shape[:2], (14, 9), 3) - 0.62) * 6, 0, 1) * amount
        blend(window, np.array([0.85, 0.83, 0.8]), scuff * 0.5)


def _unit(image: PillowImage.Image) -> FloatArray:
    return np.asarray(image, dtype=np.float64) / 255
