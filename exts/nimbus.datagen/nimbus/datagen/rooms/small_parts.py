"""Small objects on furniture and floors, outside the work area."""

from __future__ import annotations

import numpy as np

from nimbus.datagen.rooms.furnishing import FurnishingKind, Size
from nimbus.datagen.rooms.modeling import Modeler
from nimbus.datagen.rooms.shared_parts import any_color


def _kettle(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    radius, height = size[0] / 2, size[2]
    slot = ("steel", "white", "accent")[int(rng.integers(3))]
    m.turned([(radius, 0), (radius, 0.02), (0.72 * radius, 0.8 * height), (0, 0.86 * height)], slot, sides=14)
    m.turned([(0.02, 0.86 * height), (0.015, height), (0, height)], "dark", sides=8)
    points = [(0, -0.6 * radius, 0.8 * height), (0, -1.5 * radius, 0.8 * height), (0, -1.4 * radius, 0.25 * height)]
    for start, end in zip(points[:-1], points[1:], strict=True):
        m.rod(start, end, 0.011, "dark", sides=6)
    m.rod((0, 0.7 * radius, 0.65 * height), (0, 1.2 * radius, 0.8 * height), 0.015, slot, sides=6)


def _toaster(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    slot = ("steel", "accent", "white")[int(rng.integers(3))]
    half = depth / 2
    section = [(-half, 0.01), (half, 0.01), (half, 0.8 * height), (0.7 * half, height), (-0.7 * half, height)]
    m.prism([*section, (-half, 0.8 * height)], -width / 2, width / 2, slot)
    for y in (-0.35 * half, 0.35 * half):
        m.box((-0.38 * width, y - 0.013, height - 0.005), (0.38 * width, y + 0.013, height + 0.001), "dark")
    m.box((width / 2, -0.02, 0.55 * height), (width / 2 + 0.025, 0.02, 0.65 * height), "dark")


def _coffee_machine(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    slot = ("dark", "steel", "accent")[int(rng.integers(3))]
    m.box((-width / 2, -depth / 2, 0), (width / 2, -0.1 * depth, height), slot)
    m.box((-width / 2, -depth / 2, 0), (width / 2, depth / 2, 0.05), slot)
    m.box((-width / 2, -depth / 2, 0.68 * height), (width / 2, depth / 2, height), slot)
    m.at(0, 0.22 * depth, 0.05).turned([(0.055, 0), (0.06, 0.08), (0.04, 0.12), (0, 0.13)], "glass", sides=10)


def _pot(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    radius, height = size[0] / 2, size[2]
    slot = ("steel", "dark", "accent")[int(rng.integers(3))]
    m.turned([(radius, 0), (radius, height), (radius + 0.006, height)], slot, sides=16)
    m.turned([(radius, height), (0.6 * radius, height + 0.025), (0, height + 0.03)], slot, sides=16)
    m.turned([(0.012, height + 0.03), (0.018, height + 0.055), (0, height + 0.058)], "dark", sides=8)
    for side in (-1, 1):
        m.box((side * radius, -0.03, 0.75 * height), (side * (radius + 0.03), 0.03, 0.75 * height + 0.012), "dark")


def _pan(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    radius = size[0] / 2
    m.turned([(0.8 * radius, 0), (radius, 0.045), (0.97 * radius, 0.045), (0.78 * radius, 0.006)], "dark", sides=16)
    m.turned([(0.8 * radius, 0.006), (0, 0.006)], "dark", sides=16)
    m.rod((0, 0.95 * radius, 0.035), (0, 0.95 * radius + 0.18, 0.06), 0.01, "rubber", sides=6)


def _knife_block(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    tilted = m.at(z=0.13 * depth, pitch=-0.25)
    tilted.block((width, depth, height), "wood")
    for x in np.linspace(-0.3, 0.3, 3) * width:
        for y in (-0.2 * depth, 0.15 * depth):
            tilted.box((x - 0.008, y - 0.012, height), (x + 0.008, y + 0.012, height + 0.09), "dark")


def _jar(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    radius, height = size[0] / 2, size[2]
    m.turned([(radius, 0), (radius, 0.82 * height), (0.85 * radius, 0.86 * height)], any_color(rng), sides=12)
    m.turned([(0.9 * radius, 0.84 * height), (0.9 * radius, height), (0, height)], "metal", sides=12)


def _fruit_bowl(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    radius, height = size[0] / 2, size[2]
    m.turned([(0.4 * radius, 0), (radius, height), (0.94 * radius, height), (0.35 * radius, 0.02)], "stone", sides=16)
    m.turned([(0.6 * radius, 0.4 * height), (0, 0.4 * height)], "dark", sides=12)
    for angle in np.arange(5) * 2 * np.pi / 5:
        color = ((0.85, 0.25, 0.15), (0.9, 0.6, 0.1), (0.55, 0.7, 0.15), (0.9, 0.75, 0.15))[int(rng.integers(4))]
        fruit = m.at(0.5 * radius * np.cos(angle), 0.5 * radius * np.sin(angle), 0.55 * height)
        fruit.turned([(0, 0), (0.03, 0.012), (0.037, 0.037), (0.028, 0.062), (0, 0.07)], color, sides=9)


def _bottle(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    radius, height = size[0] / 2, size[2]
    rings = [(radius, 0), (radius, 0.58 * height), (0.35 * radius, 0.75 * height), (0.35 * radius, 0.93 * height)]
    m.turned(rings, ((0.2, 0.32, 0.18), (0.4, 0.22, 0.1), "glass", any_color(rng))[int(rng.integers(4))], sides=12)
    m.turned([(0.42 * radius, 0.92 * height), (0.42 * radius, height), (0, height)], any_color(rng), sides=10)
    m.turned([(1.01 * radius, 0.15 * height), (1.01 * radius, 0.45 * height)], "paper", sides=12)


def _dish_rack(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    for z in (0.01, height):
        for y in (-depth / 2, depth / 2):
            m.rod((-width / 2, y, z), (width / 2, y, z), 0.004, "steel", sides=5)
        for x in (-width / 2, width / 2):
            m.rod((x, -depth / 2, z), (x, depth / 2, z), 0.004, "steel", sides=5)
    for x in (-width / 2, width / 2):
        for y in (-depth / 2, depth / 2):
            m.rod((x, y, 0), (x, y, height), 0.004, "steel", sides=5)
    for x in np.linspace(-0.35, 0.35, int(rng.integers(3, 7))) * width:
        plate = m.at(float(x), 0, 0.11, roll=np.pi / 2 - 0.15)
        plate.turned([(0.05, 0), (0.11, 0.015), (0.1, 0.02), (0, 0.008)], "white", sides=14)


def _microwave_oven(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    slot = ("dark", "steel", "white")[int(rng.integers(3))]
    m.block(size, slot)
    m.box(
        (-width / 2 + 0.02, depth / 2, 0.03), (0.18 * width, depth / 2 + 0.006, height - 0.03), "glass", omit=("back",)
    )
    m.box((0.24 * width, depth / 2, 0.6 * height), (0.46 * width, depth / 2 + 0.003, 0.85 * height), "dark")
    m.rod(
        (0.2 * width, depth / 2 + 0.02, 0.05), (0.2 * width, depth / 2 + 0.02, height - 0.05), 0.008, "metal", sides=6
    )


def _paper_roll(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    height = size[2]
    m.turned([(0.075, 0), (0.075, 0.012), (0, 0.012)], "wood", sides=12)
    m.turned([(0.058, 0.014), (0.058, height - 0.04), (0.02, height - 0.04), (0.02, 0.014)], "paper", sides=14)
    m.rod((0, 0, 0), (0, 0, height), 0.008, "wood", sides=6)


def _cutting_board(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    m.at(0, -depth / 2, 0, pitch=0.15).box((-width / 2, 0, 0), (width / 2, 0.018, height), "wood")


def _potted_plant(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, _, height = size
    pot = 0.3 * height
    radius = 0.28 * width
    m.turned([(0.75 * radius, 0), (radius, pot), (0.9 * radius, pot), (0, 0.9 * pot)], "stone", sides=12)
    for _ in range(14):
        angle, lean = float(rng.uniform(0, 2 * np.pi)), float(rng.uniform(0.15, 0.75))
        leaf, length = m.at(0, 0, 0.9 * pot, yaw=angle).at(pitch=-lean), 0.72 * height * float(rng.uniform(0.6, 1.0))
        broad = 0.09 * length + 0.02
        points = [
            (-0.004, 0, 0),
            (0.004, 0, 0),
            (broad, 0.05 * length, 0.6 * length),
            (-broad, 0.05 * length, 0.6 * length),
        ]
        leaf.quads(np.array([points]), "plant")
        tip = [(-broad, 0.05 * length, 0.6 * length), (broad, 0.05 * length, 0.6 * length)]
        end = (0.22 * length, length)
        leaf.quads(np.array([[*tip, (0.004, *end), (-0.004, *end)]]), "plant")


def _mug(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    radius, height = size[0] / 2, size[2]
    m.turned([(radius, 0), (radius, height), (0.9 * radius, height), (0.85 * radius, 0.01)], any_color(rng), sides=12)
    m.box((radius, -0.006, 0.25 * height), (radius + 0.026, 0.006, 0.75 * height), any_color(rng))


def _waste_bin(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    radius, height = size[0] / 2, size[2]
    slot = ("dark", "steel", "white", "accent")[int(rng.integers(4))]
    m.turned([(0.85 * radius, 0), (radius, height)], slot, sides=14)
    if rng.uniform() < 0.6:
        m.turned([(1.02 * radius, height), (1.02 * radius, height + 0.02), (0, height + 0.08)], "dark", sides=14)
    else:
        m.turned([(0.97 * radius, height), (0.8 * radius, 0.02), (0, 0.02)], "dark", sides=14)


def _book_row(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    x = -width / 2
    while x < width / 2 - 0.06:
        thick, tall = float(rng.uniform(0.018, 0.05)), height * float(rng.uniform(0.7, 1.0))
        color = any_color(rng)
        m.box(
            (x, -depth / 2, 0),
            (x + thick, depth / 2 - float(rng.uniform(0, 0.03)), tall),
            color,
            omit=("bottom", "back"),
        )
        m.box((x + 0.002, depth / 2 - 0.04, tall - 0.001), (x + thick - 0.002, -depth / 2, tall + 0.0005), "paper")
        x += thick + 0.001


def _cardboard_box(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    m.block(size, "cardboard")
    m.box(
        (-0.03, -depth / 2 - 0.001, 0.75 * height), (0.03, depth / 2 + 0.001, height + 0.001), "tape", omit=("bottom",)
    )
    if rng.uniform() < 0.7:
        x = float(rng.uniform(-0.3, 0.1)) * width
        m.box(
            (x, depth / 2, 0.3 * height), (x + 0.25 * width, depth / 2 + 0.001, 0.6 * height), "paper", omit=("back",)
        )


def _fire_extinguisher(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    radius, height = size[0] / 2, size[2]
    red = (0.75, 0.08, 0.07)
    m.turned([(radius, 0), (radius, 0.75 * height), (0.5 * radius, 0.85 * height), (0, 0.86 * height)], red, sides=12)
    m.box((-0.015, -0.02, 0.85 * height), (0.015, 0.09, height), "dark")
    m.rod((0, 0.08, 0.9 * height), (0.02, radius + 0.02, 0.35 * height), 0.009, "rubber", sides=6)


def _crate(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    slot = ("wood", "plastic", "accent")[int(rng.integers(3))]
    m.box((-width / 2, -depth / 2, 0), (width / 2, depth / 2, 0.015), slot)
    for z in np.arange(0.02, height - 0.02, height / 3):
        for y in (-depth / 2, depth / 2 - 0.012):
            m.box((-width / 2, y, z), (width / 2, y + 0.012, z + 0.26 * height), slot)
        for x in (-width / 2, width / 2 - 0.012):
            m.box((x, -depth / 2, z), (x + 0.012, depth / 2, z + 0.26 * height), slot)


SMALL = (
    FurnishingKind("kettle", (0.15, 0.15, 0.2), (0.18, 0.18, 0.26), _kettle),
    FurnishingKind("toaster", (0.26, 0.16, 0.18), (0.32, 0.2, 0.21), _toaster),
    FurnishingKind("coffee_machine", (0.2, 0.28, 0.3), (0.28, 0.34, 0.38), _coffee_machine),
    FurnishingKind("pot", (0.18, 0.18, 0.1), (0.28, 0.28, 0.2), _pot),
    FurnishingKind("pan", (0.22, 0.22, 0.05), (0.3, 0.3, 0.05), _pan),
    FurnishingKind("knife_block", (0.1, 0.14, 0.2), (0.13, 0.17, 0.24), _knife_block),
    FurnishingKind("jar", (0.08, 0.08, 0.1), (0.12, 0.12, 0.22), _jar),
    FurnishingKind("fruit_bowl", (0.24, 0.24, 0.08), (0.32, 0.32, 0.11), _fruit_bowl),
    FurnishingKind("bottle", (0.06, 0.06, 0.22), (0.09, 0.09, 0.32), _bottle),
    FurnishingKind("dish_rack", (0.34, 0.26, 0.1), (0.45, 0.32, 0.13), _dish_rack),
    FurnishingKind("microwave_oven", (0.44, 0.33, 0.26), (0.52, 0.38, 0.3), _microwave_oven),
    FurnishingKind("paper_roll", (0.15, 0.15, 0.28), (0.15, 0.15, 0.32), _paper_roll),
    FurnishingKind("cutting_board", (0.2, 0.1, 0.3), (0.28, 0.1, 0.4), _cutting_board),
    FurnishingKind("potted_plant", (0.3, 0.3, 0.4), (0.6, 0.6, 1.2), _potted_plant),
    FurnishingKind("mug", (0.075, 0.075, 0.08), (0.09, 0.09, 0.11), _mug),
    FurnishingKind("waste_bin", (0.26, 0.26, 0.3), (0.36, 0.36, 0.6), _waste_bin),
    FurnishingKind("book_row", (0.3, 0.2, 0.24), (0.6, 0.22, 0.3), _book_row),
    FurnishingKind("cardboard_box", (0.25, 0.2, 0.18), (0.5, 0.4, 0.4), _cardboard_box),
    FurnishingKind("fire_extinguisher", (0.14, 0.14, 0.45), (0.17, 0.17, 0.55), _fire_extinguisher),
    FurnishingKind("crate", (0.4, 0.3, 0.2), (0.5, 0.36, 0.28), _crate),
)
