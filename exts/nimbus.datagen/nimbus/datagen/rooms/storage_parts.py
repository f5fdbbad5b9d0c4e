"""Furniture and fixtures of storage rooms."""

from __future__ import annotations

import numpy as np

from nimbus.datagen.rooms.furnishing import FurnishingKind, Size
from nimbus.datagen.rooms.modeling import Modeler


def _box(m: Modeler, low: tuple[float, float, float], size: Size) -> None:
    """Add a closed, taped carton at a corner of a shelf."""
    (x, y, z), (width, depth, height) = low, size
    m.box(low, (x + width, y + depth, z + height), "cardboard", omit=("bottom", "back"))
    middle = x + width / 2
    sides = ("bottom", "back", "left", "right")
    m.box(
        (middle - 0.025, y, z + 0.7 * height),
        (middle + 0.025, y + depth + 0.001, z + height + 0.001),
        "tape",
        omit=sides,
    )


def stock(m: Modeler, size: tuple[float, float], z: float, room: float, rng: np.random.Generator) -> None:
    """Fill a shelf (width, depth) at height ``z`` with cartons and totes, no higher than ``room`` [m]."""
    width, depth = size
    x = -width / 2 + 0.04
    while True:
        wide, tall = float(rng.uniform(0.22, 0.5)), float(rng.uniform(0.4, 0.9)) * room
        if x + wide > width / 2 - 0.03:
            return
        deep = depth * float(rng.uniform(0.6, 0.92))
        choice = rng.uniform()
        if choice < 0.6:
            _box(m, (x, depth / 2 - deep - 0.02, z), (wide, deep, tall))
        elif choice < 0.8:
            slot = ("plastic", "accent", "metal")[int(rng.integers(3))]
            tall = min(tall, 0.28)
            low, high = (x, depth / 2 - deep - 0.02, z), (x + wide, depth / 2 - 0.02, z + tall)
            m.box(low, high, slot, omit=("bottom", "back"))
            m.box((x - 0.01, low[1], z + tall - 0.03), (x + wide + 0.01, high[1] + 0.01, z + tall), slot)
            label = (x + 0.3 * wide, high[1], z + 0.2 * tall)
            m.box(label, (x + 0.7 * wide, high[1] + 0.002, z + 0.55 * tall), "paper", omit=("back",))
        x += wide + float(rng.exponential(0.05)) + 0.01


def _pallet_rack(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    for x in (-width / 2, width / 2 - 0.06):
        for y in (-depth / 2, depth / 2 - 0.06):
            m.box((x, y, 0), (x + 0.06, y + 0.06, height), "frame", omit=("bottom",))
        for z in np.arange(0.3, height, 0.6):
            m.rod((x + 0.03, -depth / 2 + 0.05, z), (x + 0.03, depth / 2 - 0.05, z + 0.4), 0.012, "metal", sides=4)
    levels = [float(z) for z in np.linspace(0.1, height - 0.1, max(3, round(height / 0.62)))]
    for z, above in zip(levels, [*levels[1:], levels[-1] + 0.5], strict=True):
        for y in (-depth / 2, depth / 2 - 0.04):
            m.box((-width / 2, y, z - 0.08), (width / 2, y + 0.04, z), "accent")
        m.box((-width / 2, -depth / 2 + 0.02, z - 0.015), (width / 2, depth / 2 - 0.02, z), "pallet")
        stock(m, (width - 0.12, depth), z, above - z - 0.14, rng)
    m.box((-0.1, depth / 2, levels[1] - 0.06), (0.1, depth / 2 + 0.002, levels[1] - 0.02), "paper", omit=("back",))


def _wire_shelf(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    for x in (-width / 2, width / 2):
        for y in (-depth / 2, depth / 2):
            m.rod((x, y, 0), (x, y, height), 0.013, "steel", sides=6)
    levels = [float(z) for z in np.linspace(0.12, height - 0.05, 4)]
    for z, above in zip(levels, [*levels[1:], levels[-1] + 0.35], strict=True):
        m.box((-width / 2, -depth / 2, z - 0.035), (width / 2, depth / 2, z), "steel")
        stock(m, (width - 0.05, depth), z, above - z - 0.06, rng)


def _pallet(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, _ = size
    for y in (-depth / 2, -0.05, depth / 2 - 0.1):
        for x in (-width / 2, -0.05, width / 2 - 0.1):
            m.box((x, y, 0.02), (x + 0.1, y + 0.1, 0.1), "pallet")
        m.box((-width / 2, y, 0), (width / 2, y + 0.1, 0.02), "pallet")
        m.box((-width / 2, y, 0.1), (width / 2, y + 0.1, 0.12), "pallet")
    for x in np.linspace(-width / 2, width / 2 - 0.1, 7):
        m.box((x, -depth / 2, 0.12), (x + 0.1, depth / 2, 0.144), "pallet")
    if rng.uniform() < 0.75:
        for place in range(int(rng.integers(1, 4))):
            for x in (-width / 2 + 0.03, 0.01):
                for y in (-depth / 2 + 0.03, 0.01):
                    if place == 0 or rng.uniform() < 0.75:
                        _box(m, (x, y, 0.145 + 0.3 * place), (width / 2 - 0.05, depth / 2 - 0.05, 0.295))


def _roll_cage(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    m.box((-width / 2, -depth / 2, 0.15), (width / 2, depth / 2, 0.19), "metal")
    for x in (-width / 2 + 0.06, width / 2 - 0.06):
        for y in (-depth / 2 + 0.06, depth / 2 - 0.06):
            m.rod((x - 0.015, y, 0.07), (x + 0.015, y, 0.07), 0.07, "rubber", sides=10)
    for x in (-width / 2, width / 2):
        for y in np.linspace(-depth / 2, depth / 2, 4):
            m.rod((x, y, 0.19), (x, y, height), 0.013, "steel", sides=4)
        for z in np.linspace(0.5, height, 3):
            m.rod((x, -depth / 2, z), (x, depth / 2, z), 0.014, "steel", sides=4)
    for x in np.linspace(-width / 2, width / 2, 5)[1:-1]:
        m.rod((x, -depth / 2, 0.19), (x, -depth / 2, height), 0.013, "steel", sides=4)
    stock(m, (width - 0.04, depth - 0.04), 0.19, 0.5, rng)


def _hand_truck(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    height = size[2]
    tilted = m.at(0, -0.05, 0, pitch=0.14)
    for x in (-0.19, 0.19):
        tilted.rod((x, 0, 0.03), (x, 0, height - 0.1), 0.02, "accent", sides=6)
        m.rod((x * 1.15 - 0.03, -0.12, 0.12), (x * 1.15 + 0.03, -0.12, 0.12), 0.12, "rubber", sides=12)
    for z in np.linspace(0.25, height - 0.25, 3):
        tilted.rod((-0.19, 0, z), (0.19, 0, z), 0.012, "accent", sides=6)
    tilted.rod((-0.19, 0, height - 0.1), (0.19, 0, height - 0.1), 0.02, "rubber", sides=6)
    m.box((-0.22, -0.05, 0.0), (0.22, 0.2, 0.012), "metal")


def _step_ladder(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    for x in (-width / 2, width / 2):
        m.rod((x, depth / 2, 0), (0.8 * x, -0.05, height), 0.018, "metal", sides=4)
        m.rod((x, -depth / 2, 0), (0.8 * x, -0.08, height), 0.018, "metal", sides=4)
    for share in np.arange(1, 5) / 5:
        half, y = width / 2 * (1 - 0.2 * share), depth / 2 * (1 - share) - 0.05 * share
        m.box((-half, y - 0.04, share * height - 0.015), (half, y + 0.04, share * height), "metal")
    m.box((-0.42 * width, -0.1, height - 0.01), (0.42 * width, 0.0, height + 0.01), "accent")


def _drum(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    radius, height = size[0] / 2, size[2]
    rings = [(radius, 0.0)]
    for share in (0.33, 0.66):
        z = share * height
        rings += [(radius, z - 0.02), (radius * 1.03, z - 0.01), (radius * 1.03, z + 0.01), (radius, z + 0.02)]
    slot = ("plastic", "accent", "steel")[int(rng.integers(3))]
    m.turned([*rings, (radius, height), (0.95 * radius, height), (0.94 * radius, height - 0.015)], slot, sides=16)
    m.turned([(0.95 * radius, height - 0.015), (0, height - 0.015)], slot, sides=16)


def _tote_stack(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    slot = ("plastic", "accent", "metal")[int(rng.integers(3))]
    for z in np.arange(int(rng.integers(2, 5))) * height:
        m.box((-width / 2 + 0.02, -depth / 2 + 0.02, z), (width / 2 - 0.02, depth / 2 - 0.02, z + height), slot)
        m.box((-width / 2, -depth / 2, z + height - 0.05), (width / 2, depth / 2, z + height - 0.01), slot)
        m.box((-0.07, depth / 2 - 0.019, z + 0.06), (0.07, depth / 2 - 0.018, z + 0.14), "paper", omit=("back",))


def _strapping_cart(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    for z in (0.16, 0.55):
        m.box((-width / 2, -depth / 2, z), (width / 2, depth / 2, z + 0.03), "frame")
    for x in (-width / 2 + 0.02, width / 2 - 0.02):
        for y in (-depth / 2 + 0.02, depth / 2 - 0.02):
            m.rod((x, y, 0.1), (x, y, height if x < 0 else 0.6), 0.014, "steel", sides=6)
            m.rod((x - 0.015, y, 0.05), (x + 0.015, y, 0.05), 0.05, "rubber", sides=9)
    m.rod((-width / 2 + 0.02, -depth / 2 + 0.02, height), (-width / 2 + 0.02, depth / 2 - 0.02, height), 0.014, "steel")
    for x in np.linspace(-0.3, 0.25, 3) * width:
        roll = m.at(float(x), 0, 0.58)
        roll.turned(
            [(0.07, 0), (0.07, 0.09), (0.03, 0.09), (0.03, 0.01)], ("tape", "white")[int(rng.integers(2))], sides=12
        )


def _packing_base(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, _ = size
    m.box((-width / 2 + 0.08, -depth / 2 + 0.08, 0.18), (width / 2 - 0.08, depth / 2 - 0.08, 0.21), "pallet")
    shelf = m.at(0, depth / 2 - 0.32, 0.21)
    stock(shelf, (width - 0.24, 0.4), 0.0, 0.35, rng)


STORAGE = (
    FurnishingKind("pallet_rack", (1.5, 0.7, 1.9), (2.2, 0.8, 2.3), _pallet_rack),
    FurnishingKind("wire_shelf", (0.9, 0.4, 1.5), (1.3, 0.5, 1.9), _wire_shelf),
    FurnishingKind("pallet", (1.0, 0.8, 0.144), (1.2, 1.0, 0.144), _pallet),
    FurnishingKind("roll_cage", (0.7, 0.6, 1.5), (0.8, 0.7, 1.7), _roll_cage),
    FurnishingKind("hand_truck", (0.5, 0.4, 1.15), (0.5, 0.4, 1.3), _hand_truck),
    FurnishingKind("step_ladder", (0.45, 0.6, 1.0), (0.5, 0.8, 1.6), _step_ladder),
    FurnishingKind("drum", (0.5, 0.5, 0.8), (0.58, 0.58, 0.9), _drum),
    FurnishingKind("tote_stack", (0.5, 0.36, 0.24), (0.6, 0.4, 0.32), _tote_stack),
    FurnishingKind("strapping_cart", (0.7, 0.45, 0.95), (0.9, 0.55, 1.0), _strapping_cart),
    FurnishingKind("packing_base", (1, 1, 0.7), (1, 1, 0.7), _packing_base),
)
