"""Furniture and fixtures of shops."""

from __future__ import annotations

import numpy as np

from nimbus.datagen.rooms.furnishing import FurnishingKind, Size
from nimbus.datagen.rooms.modeling import Modeler
from nimbus.datagen.rooms.shared_parts import any_color


def goods(m: Modeler, size: tuple[float, float], z: float, room: float, rng: np.random.Generator) -> None:
    """Fill a shelf (width, depth) at height ``z`` with rows of equal packages, no higher than ``room`` [m]."""
    width, depth = size
    x = -width / 2 + 0.02
    while x < width / 2 - 0.08:
        wide, tall = float(rng.uniform(0.05, 0.13)), room * float(rng.uniform(0.45, 0.9))
        color, second, is_round = any_color(rng), any_color(rng, value=(0.5, 0.95)), rng.uniform() < 0.4
        count = int(rng.integers(2, 6))
        for number in range(count):
            if x + wide > width / 2 - 0.01:
                break
            if rng.uniform() < 0.9:
                if is_round:
                    can = m.at(x + wide / 2, depth / 2 - 0.6 * wide, z)
                    can.turned([(0.45 * wide, 0), (0.45 * wide, 0.92 * tall), (0, tall)], color, sides=7)
                else:
                    # The gaps within a row are too narrow to show the sides.
                    hidden = ("left",) * (number > 0) + ("right",) * (number < count - 1)
                    deep, sides = depth / 2 - 0.01, ("bottom", "back", *hidden)
                    m.box((x, -0.3 * depth, z), (x + 0.94 * wide, deep, z + tall), color, omit=sides)
                    low, high = (x + 0.1 * wide, deep, z + 0.5 * tall), (x + 0.84 * wide, deep + 0.001, z + 0.8 * tall)
                    m.box(low, high, second, omit=("back", "bottom", "top", "left", "right"))
            x += wide + 0.006
        x += float(rng.exponential(0.03))


def _levels(m: Modeler, size: Size, rng: np.random.Generator, *, count: int, slot: str) -> None:
    """Add shelves with price rails and goods to a case."""
    width, depth, height = size
    places = np.linspace(0.14, height - 0.3, count)
    for z in places:
        m.box((-width / 2 + 0.01, -depth / 2, z - 0.025), (width / 2 - 0.01, depth / 2 - 0.01, z), slot, omit=("back",))
        m.box(
            (-width / 2 + 0.01, depth / 2 - 0.01, z - 0.04), (width / 2 - 0.01, depth / 2, z), "accent", omit=("back",)
        )
        for x in np.arange(-width / 2 + 0.08, width / 2 - 0.08, 0.2):
            m.box((x, depth / 2, z - 0.035), (x + 0.05, depth / 2 + 0.001, z - 0.005), "paper", omit=("back",))
        goods(m, (width - 0.06, depth - 0.04), float(z), float(places[1] - places[0]) - 0.06, rng)


def _display_shelf(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    m.box((-width / 2, -depth / 2, 0), (width / 2, -depth / 2 + 0.02, height), "white", omit=("back",))
    for x in (-width / 2, width / 2 - 0.015):
        m.box((x, -depth / 2, 0), (x + 0.015, depth / 2 - 0.12, height), "frame")
    m.box((-width / 2, -depth / 2, 0), (width / 2, depth / 2, 0.12), "frame")
    _levels(m, size, rng, count=max(3, round(height / 0.36)), slot="white")
    m.box((-width / 2, -depth / 2 + 0.02, height), (width / 2, -depth / 2 + 0.05, height + 0.16), "accent")


def _fridge_case(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    m.box((-width / 2, -depth / 2, 0), (width / 2, -depth / 2 + 0.03, height), "white", omit=("back",))
    for x in (-width / 2, width / 2 - 0.04):
        m.box((x, -depth / 2, 0), (x + 0.04, depth / 2, height), "metal")
    m.box((-width / 2, -depth / 2, 0), (width / 2, depth / 2, 0.14), "dark")
    m.box((-width / 2, -depth / 2, height - 0.2), (width / 2, depth / 2 + 0.02, height), "accent")
    inside = m.at(0, -0.02, 0.08)
    _levels(inside, (width - 0.1, depth - 0.1, height - 0.3), rng, count=4, slot="metal")
    for x in (-0.01, width / 2 - 0.06):
        m.rod((x, depth / 2 + 0.02, 0.7), (x, depth / 2 + 0.02, 1.3), 0.012, "steel", sides=6)
    m.box((-0.012, depth / 2 - 0.02, 0.14), (0.012, depth / 2, height - 0.2), "metal")


def _gondola(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    m.box((-width / 2, -0.015, 0), (width / 2, 0.015, height), "white")
    m.box((-width / 2, -depth / 2, 0), (width / 2, depth / 2, 0.12), "frame")
    for yaw in (0.0, np.pi):
        side = m.at(yaw=yaw).at(0, depth / 4)
        _levels(side, (width, depth / 2, height + 0.1), rng, count=3, slot="white")


def _cash_register(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    m.block((width, depth, 0.1), "dark")
    screen = m.at(0, -0.05, 0.1, pitch=0.35)
    screen.box((-0.4 * width, -0.015, 0.02), (0.4 * width, 0.01, height - 0.1), "dark")
    screen.box((-0.37 * width, 0, 0.035), (0.37 * width, 0.011, height - 0.12), "screen", omit=("back",))
    m.box((0.1 * width, 0.2 * depth, 0.1), (0.4 * width, 0.45 * depth, 0.14), "metal")
    m.box((0.16 * width, 0.26 * depth, 0.14), (0.34 * width, 0.3 * depth, 0.19), "paper")


def _card_terminal(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    m.turned([(0.05, 0), (0.05, 0.01), (0.015, 0.02), (0.015, 0.1)], "dark", sides=10)
    head = m.at(0, 0, 0.1, pitch=0.6)
    head.box((-0.04, -0.02, -0.02), (0.04, 0.01, 0.13), "dark")
    head.box((-0.03, 0, 0.06), (0.03, 0.012, 0.12), "screen", omit=("back",))


def _basket_stack(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, _ = size
    slot = ("accent", "plastic")[int(rng.integers(2))]
    z = 0.0
    for place in range(int(rng.integers(3, 8))):
        z = 0.06 * place
        half, deep = width / 2, depth / 2
        outer = [(-half, -deep), (half, -deep), (half, deep), (-half, deep)]
        quads = []
        for (x, y), (x1, y1) in zip(outer, [*outer[1:], outer[0]], strict=True):
            quads.append([(0.85 * x, 0.85 * y, z), (0.85 * x1, 0.85 * y1, z), (x1, y1, z + 0.22), (x, y, z + 0.22)])
        m.quads(np.array(quads), slot)
    for x in (-0.5 * width, 0.5 * width):
        m.rod((x, -0.1, z + 0.22), (x, 0.1, z + 0.22), 0.01, "dark", sides=5)
    m.box((-0.42 * width, -0.42 * depth, z), (0.42 * width, 0.42 * depth, z + 0.004), slot)


def _fruit_stand(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    m.prism([(-depth / 2, 0), (depth / 2, 0), (depth / 2, 0.5 * height), (-depth / 2, 0.8 * height)],
            -width / 2, width / 2, "wood")  # fmt: skip
    ramp = m.at(0, 0, 0.65 * height, pitch=-np.arctan2(0.3 * height, depth))
    across = max(2, int(width / 0.36))
    for place in range(across):
        x = -width / 2 + (place + 0.5) * width / across
        color = ((0.8, 0.2, 0.12), (0.92, 0.6, 0.1), (0.5, 0.65, 0.15), (0.85, 0.8, 0.25), (0.45, 0.15, 0.3))[
            int(rng.integers(5))
        ]
        half = width / across / 2 - 0.015
        ramp.box((x - half, -depth / 2, 0), (x + half, depth / 2, 0.05), "pallet")
        for u in np.linspace(-half + 0.05, half - 0.05, 3):
            for v in np.linspace(-depth / 2 + 0.07, depth / 2 - 0.07, 4):
                shade = float(rng.uniform(0.85, 1.1))
                red, green, blue = (min(0.92, shade * value) for value in color)
                fruit = ramp.at(x + float(u), float(v), 0.045)
                fruit.turned([(0.046, 0), (0.05, 0.035), (0, 0.07)], (red, green, blue), sides=7)


def _poster(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, _, height = size
    m.box((-width / 2, -0.01, 0), (width / 2, 0.006, height), any_color(rng, value=(0.6, 0.95)), omit=("back",))
    dark = any_color(rng, value=(0.1, 0.4))
    for z, tall, share in ((0.78, 0.12, 0.8), (0.2, 0.05, 0.6), (0.1, 0.05, 0.5)):
        half = share * width / 2
        m.box((-half, 0, z * height), (half, 0.007, (z + tall) * height), dark, omit=("back",))
    disc = m.at(0, 0.0, 0.52 * height, pitch=-np.pi / 2)
    disc.turned([(0.3 * width, 0.0), (0.3 * width, 0.008), (0, 0.008)], any_color(rng), sides=16)


def _newspaper_rack(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    for x in (-width / 2, width / 2):
        m.rod((x, depth / 2, 0), (x, -depth / 2, height), 0.014, "steel", sides=6)
        m.rod((x, -depth / 2, 0), (x, -depth / 2, height), 0.014, "steel", sides=6)
    for share in (0.25, 0.5, 0.75):
        y, z = depth / 2 - share * depth, share * height
        m.box((-width / 2, y - 0.04, z), (width / 2, y + 0.05, z + 0.01), "steel")
        for x in np.linspace(-width / 2 + 0.1, width / 2 - 0.1, 3):
            paper = m.at(float(x), y, z + 0.01, pitch=0.3)
            paper.box((-0.09, -0.015, 0), (0.09, 0.0, 0.27), "paper")
            paper.box((-0.08, 0, 0.08), (0.08, 0.001, 0.18), any_color(rng), omit=("back",))
            paper.box((-0.08, 0, 0.21), (0.08, 0.001, 0.25), "dark", omit=("back",))


def _clothes_rail(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    for x in (-width / 2, width / 2):
        m.rod((x, 0, 0.03), (x, 0, height), 0.015, "steel", sides=6)
        m.rod((x, -depth / 2, 0.02), (x, depth / 2, 0.02), 0.018, "steel", sides=6)
    m.rod((-width / 2, 0, height), (width / 2, 0, height), 0.013, "steel", sides=6)
    x = -width / 2 + 0.08
    while x < width / 2 - 0.08:
        wide, long = float(rng.uniform(0.19, 0.24)), float(rng.uniform(0.6, 0.95))
        section = [(-wide, height - long), (wide, height - long), (wide, height - 0.16), (0.03, height - 0.06),
                   (-0.03, height - 0.06), (-wide, height - 0.16)]  # fmt: skip
        m.prism(section, x - 0.016, x + 0.016, any_color(rng))
        x += float(rng.uniform(0.045, 0.11))


def _counter_base(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    m.box((-width / 2 + 0.03, -depth / 2 + 0.05, 0.08), (width / 2 - 0.03, depth / 2 - 0.03, height), "front")
    m.box((-width / 2 + 0.05, -depth / 2 + 0.07, 0), (width / 2 - 0.05, depth / 2 - 0.06, 0.08), "dark")
    count = int(rng.integers(6, 16))
    for x in np.linspace(-width / 2 + 0.05, width / 2 - 0.05, count):
        m.box(
            (x - 0.012, depth / 2 - 0.03, 0.09), (x + 0.012, depth / 2 - 0.018, height - 0.08), "wood", omit=("back",)
        )
    m.box((-width / 2 + 0.02, depth / 2 - 0.03, height - 0.09), (width / 2 - 0.02, depth / 2 - 0.015, height), "accent")


SHOP = (
    FurnishingKind("display_shelf", (0.9, 0.42, 1.5), (1.25, 0.5, 2.0), _display_shelf),
    FurnishingKind("fridge_case", (1.0, 0.65, 1.9), (1.5, 0.75, 2.1), _fridge_case),
    FurnishingKind("gondola", (1.1, 0.7, 1.2), (1.6, 0.9, 1.4), _gondola),
    FurnishingKind("cash_register", (0.34, 0.36, 0.34), (0.4, 0.42, 0.4), _cash_register),
    FurnishingKind("card_terminal", (0.1, 0.1, 0.24), (0.1, 0.1, 0.24), _card_terminal),
    FurnishingKind("basket_stack", (0.42, 0.3, 0.5), (0.46, 0.34, 0.5), _basket_stack),
    FurnishingKind("fruit_stand", (1.0, 0.7, 0.85), (1.6, 0.85, 1.0), _fruit_stand),
    FurnishingKind("poster", (0.45, 0.01, 0.6), (0.7, 0.01, 0.95), _poster, is_flat=True),
    FurnishingKind("newspaper_rack", (0.6, 0.4, 1.1), (0.75, 0.45, 1.3), _newspaper_rack),
    FurnishingKind("clothes_rail", (1.0, 0.5, 1.4), (1.5, 0.55, 1.6), _clothes_rail),
    FurnishingKind("counter_base", (1, 1, 0.7), (1, 1, 0.7), _counter_base),
)
