"""Printed labels: invented brands, bands, badges, small print and bar codes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

import numpy as np
from PIL import Image as PillowImage
from PIL import ImageDraw, ImageFont
from pydantic import Field

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.files.strict_yaml import StrictModel
from nimbus.datagen.objects.textures.canvas import Canvas, Color, rgb

_PIXELS_PER_METRE = 3000.0
_BRIGHTNESS = np.array([0.3, 0.59, 0.11])
Inks = tuple[Color, Color, Color]
"""Colors of the ground, the second area and the lettering."""


class Label(StrictModel):
    """Printed panel, repeated around the object."""

    paint: Literal["label"]
    on: str
    words: Annotated[tuple[str, ...], Field(min_length=1)]
    inks: Annotated[tuple[Inks, ...], Field(min_length=1)]
    designs: Annotated[tuple[Literal["banner", "badge", "wave", "tall", "stripes"], ...], Field(min_length=1)]
    repeat: Annotated[int, Field(ge=1, le=6)] = 2
    sides: tuple[Literal["front", "back", "left", "right"], ...] = Field(
        default=(), description="one panel on each of these sides instead of all around"
    )
    also: tuple[str, ...] = Field(default=(), description="other parts that are painted in the ground color")
    small_print: bool = True

    def apply(self, canvas: Canvas, rng: np.random.Generator) -> None:
        """Paint the region, and further regions in the ground color."""
        inks = self.inks[rng.integers(len(self.inks))]
        word, design = self.words[rng.integers(len(self.words))], self.designs[rng.integers(len(self.designs))]
        for part in (self.on, *self.also):
            canvas.window(part)[:] = rgb(inks[0])
        for part in [f"{self.on}.{side}" for side in self.sides] or [self.on]:
            window, region = canvas.window(part), canvas.region(part)
            repeat = 1 if self.sides else self.repeat
            panel = PillowImage.new("RGB", _pixels(region.size[0] / repeat, region.size[1]), inks[0])
            _DESIGNS[design](panel, word, inks, rng)
            if self.small_print:
                _small_print(panel, rng)
            sheet = PillowImage.new("RGB", (panel.width * repeat, panel.height))
            for place in range(repeat):
                sheet.paste(panel, (place * panel.width, 0))
            fitted = sheet.resize((window.shape[1], window.shape[0]), PillowImage.Resampling.LANCZOS)
            window[:] = np.asarray(fitted, dtype=np.float64) / 255


def _pixels(width: float, height: float) -> tuple[int, int]:
    return max(int(width * _PIXELS_PER_METRE), 24), max(int(height * _PIXELS_PER_METRE), 16)


def _ink_on(ground: str, inks: Inks) -> str:
    """Return the last ink with sufficient contrast to a ground color, or black or white."""
    brightness = float(rgb(ground) @ _BRIGHTNESS)
    for ink in reversed(inks):
        if abs(float(rgb(ink) @ _BRIGHTNESS) - brightness) > 0.3:
            return ink
    return "#161616" if brightness > 0.5 else "#f6f6f2"


Design = Callable[[PillowImage.Image, str, Inks, np.random.Generator], None]


def _write(
    panel: PillowImage.Image, word: str, ink: str, *, box: tuple[float, float, float, float], turn: int = 0
) -> None:
    """Write a word as large as fits into a box (left, top, right, bottom, as fractions of the panel)."""
    width, height = panel.size
    left, top, right, bottom = box[0] * width, box[1] * height, box[2] * width, box[3] * height
    room = (bottom - top, right - left) if turn else (right - left, bottom - top)
    reference = ImageFont.load_default(size=100)
    bounds = reference.getbbox(word)
    scale = min(room[0] / (bounds[2] - bounds[0]), room[1] / (bounds[3] - bounds[1]))
    font = ImageFont.load_default(size=max(100 * scale, 6))
    bounds = font.getbbox(word, stroke_width=max(int(scale * 5), 0))
    mask = PillowImage.new("L", (int(bounds[2] - bounds[0]) + 2, int(bounds[3] - bounds[1]) + 2))
    pen = ImageDraw.Draw(mask)
    pen.text((1 - bounds[0], 1 - bounds[1]), word, fill=255, font=font, stroke_width=max(int(scale * 5), 0))
    mask = mask.rotate(turn, expand=True)
    at = (int((left + right - mask.width) / 2), int((top + bottom - mask.height) / 2))
    panel.paste(PillowImage.new("RGB", mask.size, ink), at, mask)


def _banner(panel: PillowImage.Image, word: str, inks: Inks, rng: np.random.Generator) -> None:
    width, height = panel.size
    pen = ImageDraw.Draw(panel)
    top, bottom = height * rng.uniform(0.2, 0.32), height * rng.uniform(0.6, 0.72)
    pen.rectangle([0, top, width, bottom], fill=inks[1])
    line = height * 0.03
    for edge in (top - 2 * line, bottom + line):
        pen.rectangle([0, edge, width, edge + line], fill=inks[2])
    _write(panel, word, _ink_on(inks[1], inks), box=(0.08, top / height + 0.06, 0.78, bottom / height - 0.06))


def _badge(panel: PillowImage.Image, word: str, inks: Inks, rng: np.random.Generator) -> None:
    width, height = panel.size
    pen = ImageDraw.Draw(panel)
    center, half = (width * 0.42, height * rng.uniform(0.4, 0.5)), (width * 0.37, height * rng.uniform(0.26, 0.36))
    box = [center[0] - half[0], center[1] - half[1], center[0] + half[0], center[1] + half[1]]
    pen.ellipse(box, fill=inks[1], outline=inks[2], width=max(int(height * 0.025), 2))
    share = (center[0] / width, center[1] / height)
    _write(
        panel, word, _ink_on(inks[1], inks), box=(share[0] - 0.28, share[1] - 0.13, share[0] + 0.28, share[1] + 0.13)
    )
    pen.rectangle([0, height * 0.9, width, height], fill=inks[1])
    pen.rectangle([0, 0, width, height * 0.06], fill=inks[1])


def _wave(panel: PillowImage.Image, word: str, inks: Inks, rng: np.random.Generator) -> None:
    width, height = panel.size
    pen = ImageDraw.Draw(panel)
    x = np.linspace(0, width, 40)
    phase, depth = rng.uniform(0, 2 * np.pi), height * rng.uniform(0.06, 0.12)
    y = height * 0.58 + depth * np.sin(2 * np.pi * x / width + phase)
    edge = list(zip(x.tolist(), y.tolist(), strict=True))
    pen.polygon([*edge, (width, height), (0, height)], fill=inks[1])
    pen.line(edge, fill=inks[2], width=max(int(height * 0.03), 2))
    for _ in range(int(rng.integers(2, 5))):
        radius = height * rng.uniform(0.06, 0.12)
        at = (width * rng.uniform(0.1, 0.7), height * rng.uniform(0.74, 0.9))
        pen.ellipse([at[0] - radius, at[1] - radius, at[0] + radius, at[1] + radius], fill=inks[2])
    _write(panel, word, _ink_on(inks[0], inks), box=(0.06, 0.12, 0.8, 0.46))


def _tall(panel: PillowImage.Image, word: str, inks: Inks, rng: np.random.Generator) -> None:
    width, height = panel.size
    pen = ImageDraw.Draw(panel)
    left = width * 0.12
    pen.rectangle([left, 0, left + width * 0.5, height], fill=inks[1])
    pen.rectangle([left + width * 0.53, 0, left + width * 0.56, height], fill=inks[2])
    _write(panel, word, _ink_on(inks[1], inks), box=(0.17, 0.08, 0.57, 0.92), turn=90 if rng.random() < 0.7 else 270)


def _stripes(panel: PillowImage.Image, word: str, inks: Inks, rng: np.random.Generator) -> None:
    width, height = panel.size
    pen = ImageDraw.Draw(panel)
    step = width / float(rng.integers(3, 7))
    slant = height * rng.uniform(0.3, 0.8)
    for place in np.arange(-slant - step, width + step, step):
        pen.polygon(
            [(place, height), (place + step / 2, height), (place + step / 2 + slant, 0), (place + slant, 0)],
            fill=inks[1],
        )
    pen.rounded_rectangle([width * 0.06, height * 0.3, width * 0.8, height * 0.7], radius=height * 0.08, fill=inks[2])
    _write(panel, word, _ink_on(inks[2], inks), box=(0.11, 0.38, 0.75, 0.62))


def _small_print(panel: PillowImage.Image, rng: np.random.Generator) -> None:
    """Draw a bar code and lines of text at the right edge."""
    width, height = panel.size
    pen = ImageDraw.Draw(panel)
    left, right = width * 0.84, width * 0.97
    pen.rectangle([left, height * 0.56, right, height * 0.86], fill="#f4f4f0")
    bars: FloatArray = np.cumsum(rng.uniform(0.6, 2.0, 22))
    bars = height * 0.58 + bars / bars[-1] * height * 0.25
    for low, high in zip(bars[:-1:2], bars[1::2], strict=True):
        pen.rectangle([left + width * 0.015, low, right - width * 0.015, high], fill="#18181a")
    for line in np.arange(0.14, 0.5, 0.045):
        end = left + (right - left) * rng.uniform(0.5, 1)
        pen.line([left, height * line, end, height * line], fill="#f0f0e8", width=max(int(height * 0.012), 1))


_DESIGNS: dict[str, Design] = {
    "banner": _banner,
    "badge": _badge,
    "wave": _wave,
    "tall": _tall,
    "stripes": _stripes,
}
