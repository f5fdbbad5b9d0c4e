"""Furniture and fixtures of kitchens."""

from __future__ import annotations

import numpy as np

from nimbus.datagen.rooms.furnishing import FurnishingKind, Size
from nimbus.datagen.rooms.modeling import Modeler
from nimbus.datagen.rooms.shared_parts import front

COUNTER = 0.9
"""Height of worktops above the floor [m]."""
_PLINTH = 0.1
_TOP = 0.04


def carcass(m: Modeler, size: Size, *, worktop: bool = True) -> tuple[float, float]:
    """Add the body of a base unit with plinth and worktop; return the lower and upper edges of its front [m]."""
    width, depth, height = size
    top = height - _TOP if worktop else height
    m.box((-width / 2, -depth / 2, 0), (width / 2, depth / 2 - 0.07, _PLINTH), "dark", omit=("bottom", "back", "top"))
    sides = ("bottom", "back", "top") if worktop else ("bottom", "back")
    m.box((-width / 2, -depth / 2, _PLINTH), (width / 2, depth / 2 - 0.02, top), "carcass", omit=sides)
    if worktop:
        m.box((-width / 2, -depth / 2, top), (width / 2, depth / 2 + 0.02, height), "worktop", omit=("back",))
    return _PLINTH, top


def _base_cabinet(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, _ = size
    low, top = carcass(m, size)
    handle, y = ("bar", "knob", "side")[int(rng.integers(3))], depth / 2
    doors = 2 if width > 0.62 else 1
    drawer = float(rng.choice([0.0, 0.17]))
    for place in range(doors):
        left, right = (-width / 2 + width * (place + step) / doors for step in (0, 1))
        front(m, (left, low), (right, top - drawer), y, handle=handle)
        if drawer:
            front(m, (left, top - drawer), (right, top), y, handle="bar" if handle == "side" else handle)


def _drawer_unit(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, _ = size
    low, top = carcass(m, size)
    cuts = np.linspace(low, top, int(rng.integers(3, 5)) + 1)
    for bottom, upper in zip(cuts[:-1], cuts[1:], strict=True):
        front(m, (-width / 2, bottom), (width / 2, upper), depth / 2)


def _sink_unit(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    low, top = carcass(m, size)
    for left, right in ((-width / 2, 0.0), (0.0, width / 2)):
        front(m, (left, low), (right, top), depth / 2, handle="side")
    m.box((-0.26, -0.2, height - 0.001), (0.26, 0.2, height + 0.004), "steel", omit=("bottom",))
    m.box((-0.23, -0.15, height), (0.23, 0.17, height + 0.0045), "dark", omit=("bottom",))
    m.rod((0, -0.2, height), (0, -0.2, height + 0.26), 0.013, "steel")
    arc = [(0, -0.2 + 0.09 * (1 - np.cos(t)), height + 0.26 + 0.09 * np.sin(t)) for t in np.linspace(0, np.pi, 7)]
    for start, end in zip(arc[:-1], arc[1:], strict=True):
        m.rod(start, end, 0.011, "steel", sides=6)
    m.rod((0.05, -0.2, height), (0.05, -0.2, height + 0.06), 0.012, "steel", sides=6)


def _stove(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    m.box((-width / 2, -depth / 2, 0.05), (width / 2, depth / 2 - 0.02, height), "steel", omit=("bottom", "back"))
    m.box((-width / 2 + 0.01, -depth / 2 + 0.01, height), (width / 2 - 0.01, depth / 2 - 0.03, height + 0.006), "dark")
    y = depth / 2
    m.box((-width / 2 + 0.02, y - 0.02, 0.16), (width / 2 - 0.02, y, height - 0.13), "dark", omit=("back",))
    m.box((-width / 2 + 0.08, y, 0.28), (width / 2 - 0.08, y + 0.002, height - 0.26), "glass", omit=("back",))
    m.rod((-width / 2 + 0.06, y + 0.035, height - 0.17), (width / 2 - 0.06, y + 0.035, height - 0.17), 0.009, "metal")
    m.box((-width / 2, y - 0.02, height - 0.12), (width / 2, y, height), "steel", omit=("back",))
    for x in np.linspace(-width / 2 + 0.08, width / 2 - 0.08, 5):
        m.rod((x, y, height - 0.06), (x, y + 0.025, height - 0.06), 0.02, "dark", sides=10)
    for x in (-0.14, 0.14):
        for back in (-0.12, 0.14):
            plate = m.at(x, back - 0.02, height + 0.006)
            plate.turned([(0.09, 0), (0.09, 0.008), (0.07, 0.008), (0.0, 0.006)], "metal", sides=14)


def _dishwasher(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    low, top = carcass(m, size)
    m.box((-width / 2, depth / 2 - 0.019, low), (width / 2, depth / 2, top - 0.1), "steel", omit=("back",))
    m.box((-width / 2, depth / 2 - 0.019, top - 0.1), (width / 2, depth / 2, top), "dark", omit=("back",))
    m.rod(
        (-width / 2 + 0.05, depth / 2 + 0.035, top - 0.15),
        (width / 2 - 0.05, depth / 2 + 0.035, top - 0.15),
        0.01,
        "metal",
    )


def _fridge(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    slot = ("steel", "white", "accent")[int(rng.choice(3, p=[0.45, 0.4, 0.15]))]
    m.box((-width / 2, -depth / 2, 0.03), (width / 2, depth / 2 - 0.06, height), slot, omit=("bottom", "back"))
    split = height * float(rng.choice([0.32, 0.68]))
    for low, high in ((0.05, split), (split, height)):
        m.box((-width / 2, depth / 2 - 0.055, low + 0.004), (width / 2, depth / 2, high - 0.004), slot)
    for low, high in ((split - 0.4, split - 0.06), (split + 0.06, split + 0.45)):
        m.rod((-width / 2 + 0.05, depth / 2 + 0.04, low), (-width / 2 + 0.05, depth / 2 + 0.04, high), 0.011, "metal")


def _wall_cupboard(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    m.box((-width / 2, -depth / 2, 0), (width / 2, depth / 2 - 0.02, height), "carcass", omit=("back",))
    doors = 2 if width > 0.55 else 1
    for place in range(doors):
        left, right = (-width / 2 + width * (place + step) / doors for step in (0, 1))
        front(m, (left, 0), (right, height), depth / 2, handle="")
        x = right - 0.04 if place == 0 else left + 0.04
        m.rod((x, depth / 2 + 0.025, 0.05), (x, depth / 2 + 0.025, 0.2), 0.006, "metal", sides=6)


def _cooker_hood(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    section = [(-depth / 2, 0), (depth / 2, 0), (depth / 2, 0.06), (-depth / 2 + 0.24, 0.22), (-depth / 2, 0.22)]
    m.prism(section, -width / 2, width / 2, "steel")
    m.box((-0.14, -depth / 2, 0.22), (0.14, -depth / 2 + 0.22, height), "steel", omit=("back", "bottom"))


def _tall_unit(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    low, top = carcass(m, size, worktop=False)
    y = depth / 2
    if rng.uniform() < 0.6:
        front(m, (-width / 2, low), (width / 2, 0.75), y)
        m.box((-width / 2 + 0.01, y - 0.02, 0.76), (width / 2 - 0.01, y, 1.35), "dark", omit=("back",))
        m.box((-width / 2 + 0.07, y, 0.84), (width / 2 - 0.07, y + 0.002, 1.16), "glass", omit=("back",))
        m.rod((-width / 2 + 0.06, y + 0.035, 1.22), (width / 2 - 0.06, y + 0.035, 1.22), 0.009, "metal")
        front(m, (-width / 2, 1.36), (width / 2, top), y, handle="side")
    else:
        front(m, (-width / 2, low), (width / 2, 1.2), y, handle="side")
        front(m, (-width / 2, 1.2), (width / 2, top), y, handle="knob")


def _open_shelf(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, _ = size
    for z in (0.0, 0.32):
        m.box((-width / 2, -depth / 2, z), (width / 2, depth / 2, z + 0.03), "wood", omit=("back",))
        for x in (-width / 2 + 0.1, width / 2 - 0.1):
            m.prism([(-depth / 2, z - 0.12), (depth / 2 - 0.06, z), (-depth / 2, z)], x - 0.01, x + 0.01, "dark")
        for x in np.arange(-width / 2 + 0.1, width / 2 - 0.08, 0.14):
            if rng.uniform() < 0.7:
                radius, tall = float(rng.uniform(0.03, 0.05)), float(rng.uniform(0.06, 0.2))
                slot = ("white", "accent", "glass", "stone")[int(rng.integers(4))]
                outline = [(radius, 0), (radius, tall * 0.8), (radius * 0.8, tall), (0, tall)]
                m.at(float(x), 0.0, z + 0.03).turned(outline, slot, sides=10)


def _tiled_splash(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    m.block(size, "tile", omit=("bottom", "back"))


def _dining_table(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    m.box((-width / 2, -depth / 2, height - 0.035), (width / 2, depth / 2, height), "wood")
    for x in (-width / 2 + 0.06, width / 2 - 0.06):
        for y in (-depth / 2 + 0.06, depth / 2 - 0.06):
            m.box((x - 0.03, y - 0.03, 0), (x + 0.03, y + 0.03, height - 0.035), "wood", omit=("bottom", "top"))


def _chair(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    seat = 0.45
    m.box((-width / 2, -depth / 2, seat - 0.03), (width / 2, depth / 2, seat), "wood")
    for x in (-width / 2 + 0.02, width / 2 - 0.02):
        m.rod((x, depth / 2 - 0.02, 0), (x, depth / 2 - 0.02, seat - 0.03), 0.017, "wood", sides=6)
        m.rod((x, -depth / 2 - 0.03, 0), (x, -depth / 2, height), 0.017, "wood", sides=6)
    for z in np.linspace(seat + 0.14, height - 0.05, int(rng.integers(2, 5))):
        m.box((-width / 2, -depth / 2 - 0.01, z - 0.03), (width / 2, -depth / 2 + 0.012, z + 0.03), "wood")


def _bar_stool(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    radius, height = size[0] / 2, size[2]
    m.turned([(0, height - 0.06), (radius, height - 0.06), (radius, height - 0.01), (0, height)], "fabric", sides=14)
    if rng.uniform() < 0.5:
        m.turned([(0.2, 0), (0.2, 0.015), (0.03, 0.03), (0.025, height - 0.06)], "metal", sides=14)
    else:
        for angle in np.arange(4) * np.pi / 2 + 0.78:
            foot = np.array([np.cos(angle), np.sin(angle), 0])
            m.rod(foot * radius * 1.1, foot * radius * 0.6 + (0, 0, height - 0.06), 0.014, "metal", sides=6)
        m.turned([(radius, 0.24), (radius, 0.26), (radius - 0.015, 0.26)], "metal", sides=14)


def _island_base(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    m.box((-width / 2 + 0.05, -depth / 2 + 0.05, 0), (width / 2 - 0.05, depth / 2 - 0.05, 0.1), "dark")
    m.box((-width / 2 + 0.02, -depth / 2 + 0.02, 0.1), (width / 2 - 0.02, depth / 2 - 0.02, height), "carcass")
    count = int(rng.integers(2, 4))
    for side, length, across in ((0.0, width, depth), (np.pi, width, depth)):
        face = m.at(yaw=side)
        for place in range(count):
            left, right = (-length / 2 + 0.02 + (length - 0.04) * (place + step) / count for step in (0, 1))
            front(face, (left, 0.1), (right, height), across / 2 - 0.002, handle="bar" if side else "")


KITCHEN = (
    FurnishingKind("base_cabinet", (0.4, 0.6, COUNTER), (0.9, 0.6, COUNTER), _base_cabinet),
    FurnishingKind("drawer_unit", (0.4, 0.6, COUNTER), (0.8, 0.6, COUNTER), _drawer_unit),
    FurnishingKind("sink_unit", (0.8, 0.6, COUNTER), (1.0, 0.6, COUNTER), _sink_unit),
    FurnishingKind("stove", (0.6, 0.62, COUNTER), (0.76, 0.62, COUNTER), _stove),
    FurnishingKind("dishwasher", (0.6, 0.6, COUNTER), (0.6, 0.6, COUNTER), _dishwasher),
    FurnishingKind("fridge", (0.6, 0.66, 1.5), (0.9, 0.72, 2.0), _fridge),
    FurnishingKind("wall_cupboard", (0.4, 0.34, 0.6), (0.8, 0.34, 0.9), _wall_cupboard),
    FurnishingKind("cooker_hood", (0.6, 0.48, 0.9), (0.8, 0.5, 1.0), _cooker_hood),
    FurnishingKind("tall_unit", (0.6, 0.6, 2.0), (0.6, 0.6, 2.2), _tall_unit),
    FurnishingKind("open_shelf", (0.8, 0.22, 0.6), (1.4, 0.28, 0.6), _open_shelf),
    FurnishingKind("tiled_splash", (1, 0.012, 0.5), (1, 0.012, 0.6), _tiled_splash, is_flat=True),
    FurnishingKind("dining_table", (1.0, 0.7, 0.73), (1.5, 0.85, 0.76), _dining_table),
    FurnishingKind("chair", (0.4, 0.4, 0.85), (0.45, 0.44, 1.0), _chair),
    FurnishingKind("bar_stool", (0.32, 0.32, 0.6), (0.38, 0.38, 0.68), _bar_stool),
    FurnishingKind("island_base", (1, 1, 0.7), (1, 1, 0.7), _island_base),
)
