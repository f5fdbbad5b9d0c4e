"""Seamless procedural textures by name and seed, and the user's images as textures."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.arrays import AnyArray
from nimbus.datagen.episode.layout import SurfaceLook
from nimbus.datagen.errors import InputError, suggest
from nimbus.datagen.random_streams import generator
from nimbus.datagen.textures.image_bytes import read_image_bytes

if TYPE_CHECKING:
    from PIL.Image import Image as PillowFile


SIZE = 384
"""Side of a texture [px]."""
_SIZES = {"table": 576}
"""Sides of the textures of parts that a wrist camera sees from near: a texel is as wide as its pixel at 20 cm [px]."""
_LEAST = 8
"""Smallest side of an image [px]; a smaller image is probably a mistake."""

_MOST_BYTES = 1 << 28
"""Largest image file [bytes]."""

_PERIODS = {"table": 0.8, "floor": 2.4, "backdrop": 3.1}
"""Period of a texture on a part of the room [m]: about the extent of one view, and for the table about its visible
half."""
_PERIOD = 0.3
"""Period of a texture on an object or fixture [m]."""


@dataclass(frozen=True, eq=False)
class _Canvas:
    """Texels of a texture."""

    side: int
    """Side [px]."""
    rows: AnyArray
    """Row of each texel, as a fraction of the side."""
    columns: AnyArray
    """Column of each texel, as a fraction of the side."""


@lru_cache(maxsize=4)
def _canvas(side: int) -> _Canvas:
    rows, columns = np.meshgrid(np.arange(side) / side, np.arange(side) / side, indexing="ij")
    return _Canvas(side, rows, columns)


def texture_period(instance: str) -> float:
    """Return the period [m] of a texture on a part of the room, an object or a fixture."""
    return _PERIODS.get(instance, _PERIOD)


def texture_names() -> tuple[str, ...]:
    """Return the names of the textures."""
    return tuple(sorted(_PAINTERS))


@lru_cache(maxsize=32)
def procedural_texture(name: str, seed: int, side: int = SIZE) -> NDArray[np.uint8]:
    """Return a texture (side, side, 3) in sRGB; the array is shared, hence read-only.

    Raises:
        InputError: The name is not that of a texture.
    """
    if name not in _PAINTERS:
        raise InputError(f"unknown texture '{name}'", instead=suggest(name, texture_names()))
    image = _PAINTERS[name](generator(seed, "texture", name), _canvas(side))
    pixels = np.rint(np.clip(image, 0.0, 1.0) * 255.0).astype(np.uint8)
    pixels.setflags(write=False)
    return pixels


def surface_image(surface: SurfaceLook, instance: str = "") -> NDArray[np.uint8] | None:
    """Return the image (H, W, 3) in sRGB that replaces a surface's own; None if the surface keeps its own.

    Args:
        surface: Look of the surface.
        instance: Part of the room, such as ``table``; it determines the size of the image.

    Raises:
        InputError: The texture is unknown, or the image is missing, changed or damaged.
    """
    side = _SIZES.get(instance, SIZE)
    if surface.picture:
        return read_picture(Path(surface.picture), surface.picture_hash, side)
    return procedural_texture(surface.texture, surface.texture_seed, side) if surface.texture else None


@lru_cache(maxsize=128)
def read_picture(path: Path, content: str, side: int = SIZE) -> NDArray[np.uint8]:
    """Read an sRGB image (H, W, 3) as a texture of at most ``side`` pixels per side; it is shared, hence read-only.

    Raises:
        InputError: The image cannot be read, or its content does not match the hash.
    """
    from PIL import Image as PillowImage

    from nimbus.datagen.media.picture_files import open_picture

    if picture_hash(path) != content:
        what = "the image has changed since the episode was generated"
        raise InputError(what, where=str(path), instead="restore it, or generate the episode again")
    try:
        with warnings.catch_warnings(action="ignore"), open_picture(path) as opened:
            opened.draft("RGB", (side, side))
            picture = _in_color(opened, path)
    except (OSError, ValueError, SyntaxError, PillowImage.DecompressionBombError) as error:
        raise InputError(f"not a readable image: {error}", where=str(path), instead="give a PNG or JPEG file") from None
    if min(picture.size) < _LEAST:
        what = f"{picture.width} x {picture.height} pixels are too few for a texture"
        raise InputError(what, where=str(path), instead=f"use at least {_LEAST} x {_LEAST}")
    width, height = picture.size
    picture.thumbnail((side, side))
    if min(picture.size) < _LEAST:
        what = f"{width} x {height} pixels are too narrow for a texture"
        raise InputError(what, where=str(path), instead=f"crop it to at most {side // _LEAST} times as long as wide")
    pixels = np.asarray(picture)
    pixels.setflags(write=False)
    return pixels


def _in_color(picture: PillowFile, path: Path) -> PillowFile:
    """Convert to RGB with 8 bits per color; Pillow alone would clip images with more bits.

    Raises:
        InputError: The file does not define its white level.
    """
    from PIL import Image as PillowImage

    if picture.mode.startswith("I;16") or (picture.mode == "I" and picture.format == "PNG"):
        return PillowImage.fromarray((np.asarray(picture).astype(np.uint32) // 257).astype(np.uint8)).convert("RGB")
    if picture.mode in ("I", "F"):
        what = f"an image of 32-bit {'numbers' if picture.mode == 'F' else 'whole numbers'} has no defined white level"
        raise InputError(what, where=str(path), instead="save it with 8 or 16 bits per color")
    return picture.convert("RGB")


def picture_hash(path: Path) -> str:
    """Return the hash of an image's content.

    Raises:
        InputError: The file cannot be read.
    """
    return hashlib.sha256(read_image_bytes(path, limit=_MOST_BYTES)).hexdigest()[:16]


def _noise(
    rng: np.random.Generator, canvas: _Canvas, *, size: float, roughness: float = 1.0, stretch: float = 1.0
) -> AnyArray:
    """Return seamless noise of mean 0 and deviation 1, whose largest features are ``size`` times the side.

    Args:
        rng: Random stream for this noise alone.
        canvas: Texels.
        size: Largest features, as a fraction of the side.
        roughness: Falloff of finer features: 0.5 is sandy, 2 is smooth.
        stretch: Factor on the length of features along the rows.
    """
    side = canvas.side
    fy = np.fft.fftfreq(side)[:, None] * side
    fx = np.fft.rfftfreq(side)[None] * side * stretch
    frequency = np.sqrt(fx * fx + fy * fy)
    weight = 1.0 / (1.0 + (frequency * size) ** 2) ** (0.5 * (roughness + 0.5))
    weight[0, 0] = 0.0
    values = np.fft.irfft2(np.fft.rfft2(rng.standard_normal((side, side))) * weight, s=(side, side))
    return (values / values.std()).astype(np.float32)


def _shift(canvas: _Canvas, values: AnyArray, rows: AnyArray) -> AnyArray:
    """Shift the texels along the rows, each by a fraction of the side."""
    index = np.rint((canvas.rows + rows) * canvas.side).astype(int) % canvas.side
    return values[index, np.arange(canvas.side)[None]]


def _between(share: AnyArray, low: NDArray, high: NDArray) -> AnyArray:
    share = np.clip(share, 0.0, 1.0)[..., None]
    return (low * (1.0 - share) + high * share).astype(np.float32)


def _pick(rng: np.random.Generator, *palette: tuple[float, float, float], spread: float = 0.04) -> NDArray:
    """Return one of the colors with a small deviation."""
    chosen = np.array(palette[int(rng.integers(len(palette)))])
    return np.clip(chosen + rng.uniform(-spread, spread) + rng.uniform(-spread, spread, 3) * 0.5, 0.0, 1.0)


def _wood(rng: np.random.Generator, canvas: _Canvas) -> AnyArray:
    base = _pick(
        rng, (0.72, 0.55, 0.37), (0.56, 0.38, 0.24), (0.82, 0.69, 0.51), (0.42, 0.28, 0.19), (0.66, 0.47, 0.33)
    )
    planks = int(rng.integers(4, 8))
    plank = np.floor(canvas.rows * planks).astype(int) % planks
    slide = rng.uniform(size=planks)[plank]
    grain = _noise(rng, canvas, size=0.03, roughness=1.1, stretch=0.08)
    rings = _noise(rng, canvas, size=0.16, roughness=2.2, stretch=0.14)
    columns = np.rint((canvas.columns + slide) * canvas.side).astype(int) % canvas.side
    rows = np.broadcast_to(np.arange(canvas.side)[:, None], columns.shape)
    grain, rings = grain[rows, columns], rings[rows, columns]
    figure = 0.5 + 0.5 * np.sin(14.0 * rings)
    shade = 0.62 + 0.16 * figure + 0.07 * grain
    image = _between(shade, base * 0.55, np.minimum(base * 1.15, 1.0))
    image *= rng.uniform(0.88, 1.08, planks)[plank][..., None]
    seam = np.minimum((canvas.rows * planks) % 1.0, 1.0 - (canvas.rows * planks) % 1.0) < 0.5 * planks / canvas.side
    return np.where(seam[..., None], image * 0.55, image)


def _marble(rng: np.random.Generator, canvas: _Canvas) -> AnyArray:
    base = _pick(rng, (0.9, 0.89, 0.87), (0.82, 0.8, 0.76), (0.3, 0.33, 0.33), (0.86, 0.8, 0.72), spread=0.03)
    vein = base * 0.5 if base.mean() > 0.5 else np.minimum(base * 2.4, 0.9)
    warp = 0.02 * _noise(rng, canvas, size=0.4, roughness=2.2)
    field = _shift(canvas, _noise(rng, canvas, size=0.35, roughness=1.8), warp)
    fine = _shift(canvas, _noise(rng, canvas, size=0.15, roughness=1.4), warp)
    share = 0.65 * np.exp(-((field / 0.07) ** 2)) + 0.3 * np.exp(-((fine / 0.05) ** 2))
    cloud = 0.05 * _noise(rng, canvas, size=0.3, roughness=1.4)
    return _between(share, base, vein) + cloud[..., None] * 0.6


def _concrete(rng: np.random.Generator, canvas: _Canvas) -> AnyArray:
    base = _pick(rng, (0.6, 0.6, 0.58), (0.5, 0.51, 0.52), (0.68, 0.66, 0.62))
    mottle = 0.024 * _noise(rng, canvas, size=0.25, roughness=1.1) + 0.025 * _noise(
        rng, canvas, size=0.01, roughness=0.6
    )
    pores = _noise(rng, canvas, size=0.012, roughness=1.5) > 2.6
    image = base + mottle[..., None]
    return np.where(pores[..., None], image * 0.72, image).astype(np.float32)


def _fabric(rng: np.random.Generator, canvas: _Canvas) -> AnyArray:
    base = _pick(rng, (0.45, 0.5, 0.58), (0.62, 0.57, 0.5), (0.55, 0.34, 0.32), (0.35, 0.42, 0.37), (0.72, 0.71, 0.68))
    threads = int(rng.integers(40, 64))
    weave = np.sin(2 * np.pi * threads * canvas.rows) * np.sin(2 * np.pi * threads * canvas.columns)
    slub = (
        _noise(rng, canvas, size=0.02, roughness=0.8, stretch=0.1)
        + _noise(rng, canvas, size=0.02, roughness=0.8, stretch=0.1).T
    )
    shade = 1.0 + 0.09 * weave + 0.035 * slub + 0.03 * _noise(rng, canvas, size=0.3)
    image = base * shade[..., None]
    if rng.uniform() < 0.4:
        stripes, other = int(rng.integers(3, 9)), _pick(rng, (0.85, 0.83, 0.78), (0.25, 0.28, 0.34), (0.7, 0.6, 0.42))
        inside = ((canvas.columns * stripes) % 1.0) < rng.uniform(0.15, 0.4)
        image = np.where(inside[..., None], other * shade[..., None], image)
    return image.astype(np.float32)


def _tiles(rng: np.random.Generator, canvas: _Canvas) -> AnyArray:
    base = _pick(rng, (0.8, 0.79, 0.75), (0.58, 0.55, 0.5), (0.62, 0.68, 0.7), (0.7, 0.52, 0.42))
    other = base if rng.uniform() < 0.6 else np.clip(base * rng.uniform(0.7, 0.9), 0.0, 1.0)
    count = int(rng.integers(4, 9))
    row, column = (np.floor(axis * count).astype(int) % count for axis in (canvas.rows, canvas.columns))
    alternate = ((row + column) % 2)[..., None] if count % 2 == 0 else np.zeros((canvas.side, canvas.side, 1))
    tone = rng.uniform(0.94, 1.05, (count, count))[row, column]
    stone = 0.02 * _noise(rng, canvas, size=0.1, roughness=1.0)
    image = (base * (1 - alternate) + other * alternate) * (tone + stone)[..., None]
    edge = np.minimum.reduce(
        [np.minimum((axis * count) % 1.0, 1.0 - (axis * count) % 1.0) for axis in (canvas.rows, canvas.columns)]
    )
    grout = np.clip(1.0 - edge / (1.6 * count / canvas.side), 0.0, 1.0)
    return _between(grout * 0.9, image, np.full(3, base.mean() * 0.62))


def _paint(rng: np.random.Generator, canvas: _Canvas) -> AnyArray:
    base = _pick(
        rng,
        (0.87, 0.86, 0.83),
        (0.78, 0.81, 0.82),
        (0.83, 0.79, 0.71),
        (0.66, 0.72, 0.7),
        (0.62, 0.66, 0.74),
        (0.74, 0.62, 0.57),
    )
    roller = 0.012 * _noise(rng, canvas, size=0.012, roughness=0.9) + 0.012 * _noise(
        rng, canvas, size=0.5, roughness=1.5
    )
    return (base + roller[..., None]).astype(np.float32)


def _plaster(rng: np.random.Generator, canvas: _Canvas) -> AnyArray:
    base = _pick(rng, (0.84, 0.81, 0.75), (0.78, 0.76, 0.73), (0.8, 0.72, 0.62))
    strokes = _shift(
        canvas,
        _noise(rng, canvas, size=0.03, roughness=1.2, stretch=0.5),
        0.02 * _noise(rng, canvas, size=0.3, roughness=1.6),
    )
    relief = (np.roll(strokes, -1, axis=0) - np.roll(strokes, 1, axis=0)) * 1.5
    return (base * (1.0 + 0.035 * relief + 0.02 * strokes)[..., None]).astype(np.float32)


def _laminate(rng: np.random.Generator, canvas: _Canvas) -> AnyArray:
    base = _pick(rng, (0.88, 0.87, 0.85), (0.7, 0.7, 0.7), (0.32, 0.33, 0.35), (0.78, 0.72, 0.63), (0.55, 0.62, 0.66))
    speckle = _noise(rng, canvas, size=0.006, roughness=1.2)
    light, dark = (speckle > 1.9).astype(np.float32), (speckle < -1.9).astype(np.float32)
    shade = 1.0 + 0.1 * light - 0.14 * dark + 0.012 * _noise(rng, canvas, size=0.3)
    return (base * shade[..., None]).astype(np.float32)


_PAINTERS: dict[str, Callable[[np.random.Generator, _Canvas], AnyArray]] = {
    "concrete": _concrete,
    "fabric": _fabric,
    "laminate": _laminate,
    "marble": _marble,
    "paint": _paint,
    "plaster": _plaster,
    "tiles": _tiles,
    "wood": _wood,
}
