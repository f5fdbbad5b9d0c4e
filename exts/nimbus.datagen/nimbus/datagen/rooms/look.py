"""Look of a room: a color or texture for each material slot of its furnishings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from nimbus.datagen.episode.layout import SurfaceLook
from nimbus.datagen.random_streams import generator
from nimbus.datagen.rooms.modeling import Color
from nimbus.datagen.rooms.settings import Family

_WOODS: tuple[Color, ...] = ((0.72, 0.55, 0.37), (0.5, 0.34, 0.22), (0.82, 0.7, 0.54), (0.36, 0.25, 0.18))
_PAINTS: tuple[Color, ...] = (
    *((0.9, 0.9, 0.88), (0.86, 0.83, 0.76), (0.8, 0.84, 0.85), (0.74, 0.8, 0.76)),
    *((0.82, 0.76, 0.7), (0.72, 0.76, 0.82), (0.88, 0.84, 0.72)),
)
_FRONTS: tuple[Color, ...] = (
    *((0.88, 0.87, 0.84), (0.3, 0.36, 0.42), (0.42, 0.5, 0.45), (0.75, 0.73, 0.7)),
    *((0.24, 0.25, 0.27), (0.62, 0.68, 0.7), (0.8, 0.74, 0.6)),
)
_ACCENTS: tuple[Color, ...] = (
    *((0.7, 0.2, 0.15), (0.15, 0.35, 0.55), (0.85, 0.6, 0.15), (0.2, 0.45, 0.3)),
    *((0.5, 0.2, 0.35), (0.9, 0.45, 0.2), (0.25, 0.5, 0.55)),
)
_FIXED: Mapping[str, Color] = {
    "steel": (0.66, 0.67, 0.69),
    "metal": (0.56, 0.57, 0.59),
    "dark": (0.12, 0.12, 0.13),
    "rubber": (0.08, 0.08, 0.08),
    "white": (0.88, 0.88, 0.87),
    "glass": (0.2, 0.24, 0.27),
    "paper": (0.9, 0.88, 0.84),
    "cardboard": (0.68, 0.52, 0.36),
    "tape": (0.58, 0.44, 0.28),
    "lamp": (0.92, 0.92, 0.9),
    "ceiling": (0.9, 0.9, 0.89),
    "plant": (0.22, 0.4, 0.17),
    "pallet": (0.66, 0.53, 0.38),
    "screen": (0.09, 0.11, 0.15),
}


@dataclass(frozen=True)
class TextureSlot:
    """Procedural texture by name and seed."""

    name: str
    seed: int
    period: float
    """Length after which the texture repeats [m]."""


_FLOORS: Mapping[Family, tuple[str, ...]] = {
    "kitchen": ("tiles", "wood"),
    "office": ("wood", "fabric"),
    "storage": ("concrete",),
    "workshop": ("concrete", "wood"),
    "shop": ("tiles", "laminate", "wood"),
}
_TOPS: Mapping[Family, tuple[str, ...]] = {
    "kitchen": ("wood", "laminate", "marble", "concrete"),
    "office": ("wood", "laminate"),
    "storage": ("laminate", "wood"),
    "workshop": ("wood",),
    "shop": ("wood", "laminate", "marble"),
}
_WALLS = ("paint", "plaster", "paint", "concrete")


@dataclass(frozen=True)
class RoomLook:
    """Colors and textures of one room."""

    colors: Mapping[str, Color]
    """sRGB by slot."""
    textures: Mapping[str, TextureSlot]
    """Textures by slot; slots with a texture have no color."""
    surfaces: Mapping[str, SurfaceLook]
    """Looks of ``table``, ``floor`` and ``backdrop`` in episodes that do not randomize materials."""


def draw_look(family: Family, seed: int) -> RoomLook:
    """Draw the look of a room from a seed."""
    rng = generator(seed, "room look", family)

    def near(*palette: Color, spread: float = 0.03) -> Color:
        """Draw one of the colors, and vary it slightly."""
        chosen = np.asarray(palette[int(rng.integers(len(palette)))]) + rng.uniform(-spread, spread, 3)
        red, green, blue = (float(value) for value in np.clip(chosen, 0.03, 0.92))
        return red, green, blue

    body = near(*_FRONTS)
    is_wooden = rng.uniform() < 0.4
    colors = {slot: near(color, spread=0.02) for slot, color in _FIXED.items()} | {
        "trim": near((0.88, 0.88, 0.86), (0.35, 0.26, 0.2), (0.75, 0.76, 0.77)),
        "front": body,
        "carcass": body if rng.uniform() < 0.6 else near((0.86, 0.85, 0.82)),
        "accent": near(*_ACCENTS),
        "plastic": near(*_ACCENTS),
        "stone": near((0.7, 0.66, 0.6), (0.45, 0.3, 0.24), (0.8, 0.79, 0.77)),
        "wall": near(*_PAINTS),
        "frame": near((0.16, 0.17, 0.18), (0.7, 0.71, 0.72), *_ACCENTS[:3]),
    }

    def texture(name: str, period: float) -> TextureSlot:
        """Draw a variant of a texture."""
        return TextureSlot(name, int(rng.integers(2**31 - 1)), period)

    def chosen(names: tuple[str, ...], period: float) -> TextureSlot:
        """Draw one of several textures."""
        return texture(names[int(rng.integers(len(names)))], period)

    top, floor, wall = chosen(_TOPS[family], 0.8), chosen(_FLOORS[family], 2.4), chosen(_WALLS, 3.1)
    textures = {
        "wood": texture("wood", float(rng.uniform(0.9, 1.5))),
        "worktop": top,
        "fabric": texture("fabric", 0.35),
        "tile": texture("tiles", float(rng.uniform(0.4, 0.9))),
        "outdoors": texture("outdoors", 1.0),
    }
    if is_wooden and family in ("kitchen", "office", "shop"):
        textures["front"] = texture("wood", float(rng.uniform(1.2, 1.8)))
        del colors["front"]
    surfaces = {
        name: SurfaceLook(texture=slot.name, texture_seed=slot.seed)
        for name, slot in (("table", top), ("floor", floor), ("backdrop", wall))
    }
    return RoomLook(colors=colors, textures=textures, surfaces=surfaces)
