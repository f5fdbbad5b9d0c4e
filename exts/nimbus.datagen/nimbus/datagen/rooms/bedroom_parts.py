"""Furniture of bedrooms and living rooms; the head of a bed is at the wall."""

from __future__ import annotations

import numpy as np

from nimbus.datagen.rooms.furnishing import FurnishingKind, Size
from nimbus.datagen.rooms.modeling import Material, Modeler
from nimbus.datagen.rooms.shared_parts import any_color, front


def legs(m: Modeler, size: Size, material: Material, *, thick: float = 0.05, inset: float = 0.03) -> None:
    """Add four legs below the corners of a footprint, with sizes in [m]."""
    width, depth, height = size
    for x in (-width / 2 + inset, width / 2 - inset - thick):
        for y in (-depth / 2 + inset, depth / 2 - inset - thick):
            m.box((x, y, 0), (x + thick, y + thick, height), material, omit=("top", "bottom"))


def drawers(m: Modeler, size: Size, count: int, *, low: float = 0.08) -> None:
    """Add a chest of drawers on a plinth, with sizes in [m]."""
    width, depth, height = size
    m.box((-width / 2, -depth / 2, low), (width / 2, depth / 2 - 0.02, height - 0.025), "carcass")
    m.box((-width / 2 - 0.01, -depth / 2, height - 0.025), (width / 2 + 0.01, depth / 2, height), "wood")
    m.box((-width / 2 + 0.02, -depth / 2 + 0.02, 0), (width / 2 - 0.02, depth / 2 - 0.05, low), "dark", omit=("top",))
    cuts = np.linspace(low, height - 0.03, count + 1)
    for bottom, top in zip(cuts[:-1], cuts[1:], strict=True):
        front(m, (-width / 2, float(bottom)), (width / 2, float(top)), depth / 2)


def _bed(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    base, cover = 0.3, any_color(rng, value=(0.4, 0.9))
    m.box((-width / 2, -depth / 2, 0.1), (width / 2, depth / 2, base), "wood")
    legs(m, (width, depth, 0.1), "wood")
    m.box((-width / 2 + 0.02, -depth / 2 + 0.04, base), (width / 2 - 0.02, depth / 2 - 0.02, 0.5), "white")
    m.box((-width / 2 - 0.01, -0.2 * depth, 0.32), (width / 2 + 0.01, depth / 2 - 0.01, 0.53), cover)
    m.box((-width / 2, -depth / 2, 0.1), (width / 2, -depth / 2 + 0.05, height), "wood")
    pillows = 2 if width > 1.2 else 1
    for x in (np.arange(pillows) + 0.5) / pillows * width - width / 2:
        m.at(float(x), -depth / 2 + 0.28, 0.5, roll=0.0, pitch=-0.25).block((0.55, 0.35, 0.12), "fabric", omit=())


def _bunk_bed(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    for low in (0.3, 1.2):
        m.box((-width / 2, -depth / 2, low), (width / 2, depth / 2, low + 0.08), "wood")
        m.box(
            (-width / 2 + 0.04, -depth / 2 + 0.04, low + 0.08),
            (width / 2 - 0.04, depth / 2 - 0.04, low + 0.22),
            "white",
        )
        m.box(
            (-width / 2 + 0.04, -depth / 4, low + 0.2), (width / 2 - 0.04, depth / 2 - 0.04, low + 0.26), any_color(rng)
        )
    legs(m, (width, depth, height), "wood", thick=0.07, inset=0.0)
    for z in np.arange(0.35, 1.6, 0.28):
        m.rod((width / 2 - 0.02, 0.1, float(z)), (width / 2 - 0.02, 0.5, float(z)), 0.016, "wood", sides=6)
    m.box((-width / 2, depth / 2 - 0.04, 1.42), (width / 2, depth / 2, 1.55), "wood")


def _crib(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    m.box((-width / 2, -depth / 2, 0.3), (width / 2, depth / 2, 0.36), "white")
    m.box((-width / 2 + 0.03, -depth / 2 + 0.03, 0.36), (width / 2 - 0.03, depth / 2 - 0.03, 0.46), any_color(rng))
    legs(m, (width, depth, height), "white", inset=0.0)
    for y in (-depth / 2 + 0.02, depth / 2 - 0.02):
        m.rod((-width / 2, y, height), (width / 2, y, height), 0.018, "white", sides=6)
        for x in np.arange(-width / 2 + 0.1, width / 2, 0.1):
            m.rod((float(x), y, 0.34), (float(x), y, height), 0.008, "white", sides=5)


def _nightstand(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    drawers(m, size, 2)


def _dresser(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    drawers(m, size, int(rng.integers(3, 5)))


def _wardrobe(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    m.box((-width / 2, -depth / 2, 0), (width / 2, depth / 2 - 0.02, height), "carcass", omit=("bottom",))
    count = max(2, round(width / 0.55))
    cuts = np.linspace(-width / 2, width / 2, count + 1)
    for low, high in zip(cuts[:-1], cuts[1:], strict=True):
        front(m, (float(low), 0.06), (float(high), height - 0.02), depth / 2, handle="side")


def _armchair(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    cover = "fabric" if rng.uniform() < 0.5 else any_color(rng)
    m.box((-width / 2, -depth / 2, 0.12), (width / 2, depth / 2, 0.4), cover)
    m.box((-width / 2, -depth / 2, 0.4), (width / 2, -depth / 2 + 0.2, height), cover)
    for x in (-width / 2, width / 2 - 0.15):
        m.box((x, -depth / 2, 0.4), (x + 0.15, depth / 2, 0.58), cover)
    m.box((-width / 2 + 0.16, -depth / 2 + 0.2, 0.4), (width / 2 - 0.16, depth / 2 + 0.02, 0.48), "fabric")
    legs(m, (width, depth, 0.12), "wood")


def _coffee_table(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    if rng.uniform() < 0.4:
        m.turned([(0, height - 0.03), (width / 2, height - 0.03), (width / 2, height), (0, height)], "wood", sides=20)
        m.turned([(0.2, 0), (0.2, 0.02), (0.04, 0.05), (0.04, height - 0.03)], "metal", sides=12)
        return
    m.box((-width / 2, -depth / 2, height - 0.035), (width / 2, depth / 2, height), "wood")
    m.box((-width / 2 + 0.05, -depth / 2 + 0.05, 0.12), (width / 2 - 0.05, depth / 2 - 0.05, 0.14), "wood")
    legs(m, (width, depth, height - 0.035), "frame")


def _side_table(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, _, height = size
    m.turned([(0, height - 0.025), (width / 2, height - 0.025), (width / 2, height), (0, height)], "wood", sides=18)
    m.turned([(0.7 * width / 2, 0), (0.7 * width / 2, 0.02), (0.025, 0.04), (0.025, height - 0.02)], "frame")


def _tv_stand(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    m.box((-width / 2, -depth / 2, 0.1), (width / 2, depth / 2 - 0.02, height), "wood")
    legs(m, (width, depth, 0.1), "frame")
    cuts = np.linspace(-width / 2, width / 2, 4)
    for place in (0, 2):
        front(m, (float(cuts[place]), 0.12), (float(cuts[place + 1]), height - 0.03), depth / 2, handle="none")
    m.box((cuts[1], depth / 2 - 0.03, 0.16), (cuts[2], depth / 2 - 0.015, height - 0.05), "dark", omit=("back",))


def _television(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, _, height = size
    m.box((-0.2 * width, -0.1, 0), (0.2 * width, 0.1, 0.015), "dark")
    m.box((-0.04, -0.02, 0.01), (0.04, 0.0, 0.12), "dark")
    m.box((-width / 2, -0.02, 0.07), (width / 2, 0.02, height), "dark")
    m.box((-width / 2 + 0.012, 0, 0.085), (width / 2 - 0.012, 0.022, height - 0.012), "screen", omit=("back",))


def _floor_lamp(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    height = size[2]
    m.turned([(0.15, 0), (0.15, 0.02), (0.012, 0.035), (0.012, height - 0.25)], "frame", sides=14)
    shade = "accent" if rng.uniform() < 0.4 else "lamp"
    m.turned([(0.2, height - 0.28), (0.13, height), (0, height)], shade, sides=16)


def _piano(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    m.box((-width / 2, -depth / 2, 0), (width / 2, 0.0, height), "dark")
    m.box((-width / 2, -0.02, 0.6), (width / 2, depth / 2, 0.72), "dark")
    m.box((-width / 2 + 0.06, 0.05, 0.72), (width / 2 - 0.06, depth / 2 - 0.03, 0.735), "white")
    for x in np.arange(-width / 2 + 0.1, width / 2 - 0.1, 0.055):
        m.box((x, 0.05, 0.735), (x + 0.022, 0.16, 0.745), "dark", omit=("bottom",))
    for x in (-width / 2, width / 2 - 0.06):
        m.box((x, depth / 2 - 0.08, 0), (x + 0.06, depth / 2 - 0.02, 0.6), "dark")


def _toy_chest(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    body = any_color(rng, value=(0.5, 0.95))
    m.block((width, depth, height - 0.04), body)
    m.box((-width / 2 - 0.01, -depth / 2, height - 0.04), (width / 2 + 0.01, depth / 2 + 0.01, height), "wood")
    for _ in range(3):
        x = float(rng.uniform(-0.4, 0.4)) * width
        m.at(x, 0.0, height, yaw=float(rng.uniform(-1, 1))).block((0.1, 0.1, 0.1), any_color(rng))


BEDROOM = (
    FurnishingKind("bed", (0.95, 2.0, 0.9), (1.8, 2.1, 1.15), _bed),
    FurnishingKind("bunk_bed", (2.0, 0.95, 1.65), (2.05, 1.0, 1.75), _bunk_bed),
    FurnishingKind("crib", (1.2, 0.65, 0.85), (1.3, 0.7, 0.95), _crib),
    FurnishingKind("nightstand", (0.4, 0.38, 0.48), (0.5, 0.42, 0.58), _nightstand),
    FurnishingKind("dresser", (0.8, 0.45, 0.8), (1.3, 0.5, 1.1), _dresser),
    FurnishingKind("wardrobe", (1.0, 0.58, 1.9), (2.0, 0.62, 2.2), _wardrobe),
    FurnishingKind("armchair", (0.75, 0.75, 0.8), (0.9, 0.85, 0.95), _armchair),
    FurnishingKind("coffee_table", (0.7, 0.5, 0.38), (1.1, 0.6, 0.45), _coffee_table),
    FurnishingKind("side_table", (0.4, 0.4, 0.48), (0.5, 0.5, 0.6), _side_table),
    FurnishingKind("tv_stand", (1.2, 0.4, 0.45), (1.8, 0.45, 0.55), _tv_stand),
    FurnishingKind("television", (0.9, 0.2, 0.62), (1.25, 0.2, 0.8), _television),
    FurnishingKind("floor_lamp", (0.4, 0.4, 1.5), (0.4, 0.4, 1.75), _floor_lamp),
    FurnishingKind("piano", (1.45, 0.6, 1.2), (1.55, 0.65, 1.3), _piano),
    FurnishingKind("toy_chest", (0.6, 0.4, 0.4), (0.8, 0.45, 0.5), _toy_chest),
)
