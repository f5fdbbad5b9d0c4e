"""Furniture of bathrooms, laundries, halls and exercise rooms, and open doorways."""

from __future__ import annotations

import numpy as np

from nimbus.datagen.rooms.bedroom_parts import legs
from nimbus.datagen.rooms.building_parts import WALL
from nimbus.datagen.rooms.furnishing import FurnishingKind, Size
from nimbus.datagen.rooms.modeling import Color, Modeler
from nimbus.datagen.rooms.shared_parts import any_color, front

_CERAMIC: Color = (0.93, 0.93, 0.92)
JAMB = 0.05
"""Width of the frame of a doorway [m]."""


def _doorway(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    """Add a frame on both sides of a wall, and the threshold between two floors."""
    width, depth, height = size
    half = width / 2
    for x in (-half, half - JAMB):
        m.box((x, -depth - 0.015, 0), (x + JAMB, 0.015, height), "trim", omit=("bottom",))
    m.box((-half, -depth - 0.015, height - JAMB), (half, 0.015, height), "trim")
    m.box((-half + JAMB, -depth, -0.02), (half - JAMB, 0.0, 0.0), "wood", omit=("bottom",))


def _toilet(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    bowl = m.at(0, 0.08, 0)
    bowl.turned(
        [(0.12, 0), (0.13, 0.2), (0.19, 0.38), (0.19, 0.41), (0.12, 0.41), (0.1, 0.3), (0, 0.28)], _CERAMIC, sides=16
    )
    bowl.at(0, -0.02, 0.41).turned([(0.195, 0), (0.195, 0.03), (0, 0.03)], "white", sides=16)
    m.box((-width / 2, -depth / 2, 0.38), (width / 2, -depth / 2 + 0.18, height), _CERAMIC)
    m.box((-0.12, -depth / 2, 0), (0.12, 0.05, 0.4), _CERAMIC, omit=("bottom",))


def _washbasin(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    m.box((-width / 2, -depth / 2, 0.2), (width / 2, depth / 2 - 0.02, height - 0.12), "carcass")
    for low, high in ((-width / 2, 0.0), (0.0, width / 2)):
        front(m, (low, 0.22), (high, height - 0.13), depth / 2)
    m.box((-width / 2, -depth / 2, height - 0.12), (width / 2, depth / 2, height), _CERAMIC)
    m.box((-width / 2 + 0.08, -0.1, height), (width / 2 - 0.08, depth / 2 - 0.05, height + 0.003), (0.75, 0.76, 0.77))
    m.rod((0, -0.18, height), (0, -0.18, height + 0.16), 0.014, "steel")
    m.rod((0, -0.18, height + 0.15), (0, -0.03, height + 0.12), 0.011, "steel")


def _bathtub(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    wall = 0.07
    m.box((-width / 2, depth / 2 - wall, 0), (width / 2, depth / 2, height), _CERAMIC, omit=("bottom",))
    m.box((-width / 2, -depth / 2, 0), (width / 2, -depth / 2 + wall, height), _CERAMIC, omit=("bottom",))
    for x in (-width / 2, width / 2 - wall):
        m.box((x, -depth / 2, 0), (x + wall, depth / 2, height), _CERAMIC, omit=("bottom",))
    m.box((-width / 2, -depth / 2, 0), (width / 2, depth / 2, 0.15), _CERAMIC, omit=("bottom",))
    m.rod(
        (-width / 2 + 0.2, -depth / 2 + 0.03, height),
        (-width / 2 + 0.2, -depth / 2 + 0.03, height + 0.15),
        0.016,
        "steel",
    )


def _shower(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    m.block((width, depth, 0.08), _CERAMIC)
    m.box((-width / 2, -depth / 2, 0.08), (width / 2, -depth / 2 + 0.012, height), "tile")
    for x in (-width / 2, width / 2 - 0.02):
        m.box((x, depth / 2 - 0.03, 0.08), (x + 0.02, depth / 2, height), "steel")
    m.box((-width / 2, depth / 2 - 0.02, height - 0.03), (width / 2, depth / 2, height), "steel")
    m.box((-width / 2, -depth / 2, 0.08), (-width / 2 + 0.01, depth / 2, height), (0.78, 0.85, 0.86))
    m.rod((0.2, -depth / 2 + 0.05, 0.9), (0.2, -depth / 2 + 0.05, 2.0), 0.012, "steel")
    m.at(0.2, -depth / 2 + 0.16, 1.96).turned([(0.09, 0), (0.09, 0.02), (0, 0.04)], "steel")


def _drum_machine(m: Modeler, size: Size, *, body: Color | str, door: Color | str) -> None:
    """Add a machine with a round door."""
    width, depth, height = size
    m.block((width, depth - 0.02, height), body)
    m.box((-width / 2, depth / 2 - 0.02, height - 0.12), (width / 2, depth / 2 - 0.015, height - 0.01), "dark")
    for radius, out, material in ((0.2, 0.0, "metal"), (0.16, 0.006, door)):
        m.at(0, depth / 2 - 0.012 + out, 0.5 * height, pitch=-np.pi / 2).turned(
            [(radius, 0), (radius, 0.01), (0, 0.01)], material, sides=20
        )


def _washing_machine(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    _drum_machine(m, size, body=_CERAMIC, door=(0.25, 0.3, 0.34))


def _tumble_dryer(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    _drum_machine(m, size, body=(0.8, 0.81, 0.82), door=(0.12, 0.12, 0.13))


def _laundry_basket(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    radius, height = size[0] / 2, size[2]
    m.turned(
        [(0.8 * radius, 0), (radius, height), (0.92 * radius, height), (0.8 * radius, 0.8 * height)], "wood", sides=14
    )
    m.at(0, 0, 0.8 * height).turned([(0.8 * radius, 0), (0.5 * radius, 0.12), (0, 0.15)], any_color(rng), sides=10)


def _ironing_board(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    m.box((-width / 2, -depth / 2, height - 0.04), (width / 2, depth / 2, height), any_color(rng, value=(0.5, 0.9)))
    for x in (-0.35, 0.35):
        m.rod((x * width, -0.12, 0), (-x * width, 0.0, height - 0.04), 0.014, "steel", sides=6)
        m.rod((x * width, 0.12, 0), (-x * width, 0.0, height - 0.04), 0.014, "steel", sides=6)


def _shoe_rack(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    for x in (-width / 2, width / 2 - 0.03):
        m.box((x, -depth / 2, 0), (x + 0.03, depth / 2, height), "wood", omit=("bottom",))
    for z in np.linspace(0.08, height - 0.02, 3):
        m.box((-width / 2 + 0.03, -depth / 2, z), (width / 2 - 0.03, depth / 2, z + 0.02), "wood")
        for x in np.arange(-width / 2 + 0.1, width / 2 - 0.1, 0.22):
            if rng.uniform() < 0.7 and z < height - 0.1:
                m.at(float(x) + 0.05, 0, float(z) + 0.02).block((0.1, 0.26, 0.09), any_color(rng, value=(0.1, 0.6)))


def _console_table(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    m.box((-width / 2, -depth / 2, height - 0.03), (width / 2, depth / 2, height), "wood")
    legs(m, (width, depth, height - 0.03), "frame", thick=0.03)


def _mirror(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, _, height = size
    m.box((-width / 2, -0.01, 0), (width / 2, 0.012, height), "frame", omit=("back",))
    m.box(
        (-width / 2 + 0.025, 0, 0.025), (width / 2 - 0.025, 0.014, height - 0.025), (0.78, 0.82, 0.85), omit=("back",)
    )


def _towel_rail(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, _, height = size
    for z in np.linspace(0.05, height, 8):
        m.rod((-width / 2, 0.05, float(z)), (width / 2, 0.05, float(z)), 0.011, "steel", sides=6)
    for x in (-width / 2, width / 2):
        m.rod((x, 0.05, 0), (x, 0.05, height), 0.014, "steel", sides=6)
    m.box((-0.3 * width, 0.06, 0.35 * height), (0.3 * width, 0.075, 0.95 * height), any_color(rng, value=(0.5, 0.95)))


def _treadmill(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    m.box((-width / 2, -depth / 2, 0.05), (width / 2, depth / 2, 0.2), "dark")
    m.box((-width / 2 + 0.1, -depth / 2 + 0.3, 0.2), (width / 2 - 0.1, depth / 2, 0.205), "rubber")
    for x in (-width / 2 + 0.03, width / 2 - 0.03):
        m.rod((x, -depth / 2 + 0.25, 0.15), (x, -depth / 2 + 0.1, height), 0.03, "metal")
        m.rod((x, -depth / 2 + 0.12, height - 0.15), (x, 0.1, height - 0.3), 0.022, "rubber")
    m.box((-width / 2, -depth / 2, height - 0.1), (width / 2, -depth / 2 + 0.16, height), "dark")


def _weight_bench(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    m.box((-0.14, -0.3 * depth, 0.4), (0.14, depth / 2, 0.48), "dark")
    legs(m.at(0, 0.1, 0), (0.3, 0.8 * depth, 0.4), "metal", inset=0.0)
    for x in (-0.35 * width, 0.35 * width):
        m.rod((x, -depth / 2 + 0.08, 0), (x, -depth / 2 + 0.08, height), 0.025, "metal")
        m.at(1.3 * x, -depth / 2 + 0.08, height - 0.05, roll=np.pi / 2).turned(
            [(0, -0.02), (0.17, -0.02), (0.17, 0.02), (0, 0.02)], "dark", sides=16
        )
    m.rod((-width / 2, -depth / 2 + 0.08, height - 0.05), (width / 2, -depth / 2 + 0.08, height - 0.05), 0.014, "steel")


def _exercise_ball(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    radius = size[0] / 2
    angles = np.linspace(-np.pi / 2, np.pi / 2, 10)
    profile = [(radius * float(np.cos(a)), radius * (1 + float(np.sin(a)))) for a in angles]
    m.turned(profile, any_color(rng, value=(0.5, 0.9)), sides=18)


def _yoga_mat(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    m.block(size, any_color(rng, value=(0.4, 0.8)))


BATH = (
    FurnishingKind("doorway", (0.85, WALL, 2.05), (1.1, WALL, 2.12), _doorway, is_flat=True),
    FurnishingKind("toilet", (0.4, 0.66, 0.78), (0.44, 0.7, 0.84), _toilet),
    FurnishingKind("washbasin", (0.6, 0.46, 0.84), (1.0, 0.5, 0.9), _washbasin),
    FurnishingKind("bathtub", (1.55, 0.72, 0.55), (1.7, 0.78, 0.6), _bathtub),
    FurnishingKind("shower", (0.85, 0.85, 2.0), (0.95, 0.95, 2.1), _shower),
    FurnishingKind("washing_machine", (0.6, 0.6, 0.85), (0.6, 0.62, 0.86), _washing_machine),
    FurnishingKind("tumble_dryer", (0.6, 0.6, 0.85), (0.6, 0.62, 0.86), _tumble_dryer),
    FurnishingKind("laundry_basket", (0.4, 0.4, 0.5), (0.45, 0.45, 0.6), _laundry_basket),
    FurnishingKind("ironing_board", (1.2, 0.34, 0.85), (1.3, 0.38, 0.92), _ironing_board),
    FurnishingKind("shoe_rack", (0.7, 0.3, 0.5), (1.0, 0.34, 0.65), _shoe_rack),
    FurnishingKind("console_table", (0.8, 0.3, 0.78), (1.2, 0.36, 0.85), _console_table),
    FurnishingKind("mirror", (0.45, 0.02, 0.7), (0.8, 0.02, 1.1), _mirror, is_flat=True),
    FurnishingKind("towel_rail", (0.45, 0.1, 1.0), (0.55, 0.1, 1.3), _towel_rail),
    FurnishingKind("treadmill", (0.75, 1.6, 1.3), (0.85, 1.75, 1.4), _treadmill),
    FurnishingKind("weight_bench", (1.2, 1.3, 1.1), (1.3, 1.4, 1.2), _weight_bench),
    FurnishingKind("exercise_ball", (0.55, 0.55, 0.55), (0.75, 0.75, 0.75), _exercise_ball),
    FurnishingKind("yoga_mat", (0.6, 1.7, 0.008), (0.65, 1.8, 0.01), _yoga_mat, is_flat=True),
)
