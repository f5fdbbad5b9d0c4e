"""Furniture and fixtures of workshops."""

from __future__ import annotations

import numpy as np

from nimbus.datagen.rooms.furnishing import FurnishingKind, Size
from nimbus.datagen.rooms.modeling import Modeler
from nimbus.datagen.rooms.shared_parts import any_color, front


def _workbench(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    m.box((-width / 2, -depth / 2, height - 0.06), (width / 2, depth / 2, height), "wood")
    for x in (-width / 2 + 0.05, width / 2 - 0.13):
        for y in (-depth / 2 + 0.04, depth / 2 - 0.12):
            m.box((x, y, 0), (x + 0.08, y + 0.08, height - 0.06), "frame", omit=("bottom", "top"))
    m.box((-width / 2 + 0.06, -depth / 2 + 0.06, 0.18), (width / 2 - 0.06, depth / 2 - 0.06, 0.21), "wood")
    vise = m.at(width / 2 - 0.22, depth / 2 - 0.1, height)
    vise.box((-0.07, -0.1, 0), (0.07, 0.02, 0.09), "accent")
    vise.box((-0.07, 0.07, 0.02), (0.07, 0.11, 0.09), "accent")
    vise.rod((0, 0, 0.04), (0, 0.18, 0.04), 0.014, "steel", sides=8)
    vise.rod((-0.08, 0.18, 0.04), (0.08, 0.18, 0.04), 0.007, "steel", sides=6)


def _tool_chest(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    slot = ((0.62, 0.09, 0.08), (0.12, 0.25, 0.5), (0.15, 0.15, 0.16))[int(rng.integers(3))]
    m.box((-width / 2, -depth / 2, 0.12), (width / 2, depth / 2 - 0.015, height), slot, omit=("back",))
    for x in (-width / 2 + 0.08, width / 2 - 0.08):
        for y in (-depth / 2 + 0.08, depth / 2 - 0.08):
            m.rod((x - 0.02, y, 0.06), (x + 0.02, y, 0.06), 0.06, "rubber", sides=9)
    cuts = [0.13, *np.sort(rng.uniform(0.3, height - 0.08, 5)), height - 0.02]
    for low, high in zip(cuts[:-1], cuts[1:], strict=True):
        if high - low > 0.03:
            m.box(
                (-width / 2 + 0.015, 0, low + 0.004), (width / 2 - 0.015, depth / 2, high - 0.004), slot, omit=("back",)
            )
            m.box((-0.4 * width, depth / 2, high - 0.03), (0.4 * width, depth / 2 + 0.012, high - 0.014), "steel")
    m.box((-width / 2, -depth / 2, height), (width / 2, depth / 2, height + 0.01), "rubber")


def _pegboard(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, _, height = size
    m.box((-width / 2, -0.01, 0), (width / 2, 0.012, height), "pallet", omit=("back",))
    for x in np.arange(-width / 2 + 0.09, width / 2 - 0.06, 0.13):
        z = height * float(rng.uniform(0.62, 0.92))
        tool, long = m.at(float(x), 0.025, z), height * float(rng.uniform(0.2, 0.5))
        grip = ("accent", "dark", "wood")[int(rng.integers(3))]
        choice = int(rng.integers(4))
        tool.rod((0, -0.02, 0), (0, 0.015, 0), 0.005, "steel", sides=5)
        if choice == 0:  # a hammer
            tool.box((-0.012, -0.01, -long), (0.012, 0.012, 0), grip)
            tool.box((-0.06, -0.014, -0.01), (0.05, 0.016, 0.03), "steel")
        elif choice == 1:  # a screwdriver
            tool.rod((0, 0, 0.01), (0, 0, -0.09), 0.015, grip, sides=8)
            tool.rod((0, 0, -0.09), (0, 0, -long), 0.005, "steel", sides=5)
        elif choice == 2:  # a saw
            tool.box((-0.05, -0.003, -long - 0.1), (0.03, 0.003, -0.08), "steel")
            tool.box((-0.05, -0.014, -0.08), (0.05, 0.014, 0.02), grip)
        else:  # a wrench
            tool.box((-0.011, -0.005, -long), (0.011, 0.005, 0), "steel")
            for z_end in (-long, 0.0):
                ring = tool.at(0, 0.006, z_end, pitch=np.pi / 2)
                ring.turned([(0.026, 0), (0.026, 0.011), (0, 0.011)], "steel", sides=8)


def _bin_wall(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    m.box((-width / 2, -depth / 2, 0), (width / 2, -depth / 2 + 0.012, height), "metal", omit=("back",))
    across = max(3, int(width / 0.16))
    wide = width / across
    for z in np.arange(0.02, height - 0.12, 0.16):
        for place in range(across):
            if rng.uniform() < 0.88:
                slot = ("accent", "plastic", "accent")[int(rng.integers(3))]
                x = -width / 2 + place * wide
                half = depth / 2
                section = [(-half + 0.012, z), (half, z), (half, z + 0.06), (-half + 0.012, z + 0.12)]
                m.prism(section, x + 0.008, x + wide - 0.008, slot)


def _drill_press(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    height = size[2]
    slot = ((0.2, 0.4, 0.3), (0.5, 0.52, 0.55), (0.15, 0.25, 0.45))[int(rng.integers(3))]
    m.box((-0.16, -0.22, 0), (0.16, 0.2, 0.05), "metal")
    m.rod((0, -0.12, 0.05), (0, -0.12, height - 0.15), 0.035, "steel", sides=10)
    m.box((-0.13, -0.1, 0.45 * height), (0.13, 0.18, 0.45 * height + 0.03), "metal")
    m.box((-0.11, -0.22, 0.72 * height), (0.11, 0.2, height), slot)
    m.rod((0, 0.08, 0.56 * height), (0, 0.08, 0.72 * height), 0.022, "steel", sides=10)
    m.rod((0, 0.08, 0.5 * height), (0, 0.08, 0.56 * height), 0.006, "steel", sides=6)
    for angle in np.arange(3) * 2 * np.pi / 3:
        y, z = 0.1 * np.cos(angle), 0.1 * np.sin(angle)
        m.rod((0.13, 0.02, 0.78 * height), (0.15, 0.02 + y, 0.78 * height + z), 0.007, "dark", sides=5)


def _sawhorse(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    m.box((-width / 2, -0.045, height - 0.09), (width / 2, 0.045, height), "pallet")
    for x in (-width / 2 + 0.1, width / 2 - 0.1):
        for side in (-1, 1):
            m.rod((x, side * depth / 2, 0), (x, side * 0.03, height - 0.03), 0.028, "pallet", sides=4)
        m.box((x - 0.012, -0.17, 0.3), (x + 0.012, 0.17, 0.36), "pallet")


def _lumber_stack(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, _ = size
    for z in np.arange(int(rng.integers(2, 5))) * 0.05:
        y = -depth / 2
        while y < depth / 2 - 0.1:
            wide, short = float(rng.uniform(0.08, 0.16)), float(rng.uniform(0, 0.2))
            m.box(
                (-width / 2 + short, y, 0.06 + z), (width / 2 - float(rng.uniform(0, 0.1)), y + wide, 0.1 + z), "wood"
            )
            y += wide + 0.01
    for x in (-0.35 * width, 0.35 * width):
        m.box((x - 0.04, -depth / 2, 0), (x + 0.04, depth / 2, 0.06), "pallet")


def _compressor(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, _, height = size
    slot = ((0.7, 0.1, 0.08), (0.1, 0.3, 0.55), (0.85, 0.6, 0.1))[int(rng.integers(3))]
    radius = 0.3 * height
    m.rod((-width / 2, 0, radius + 0.08), (width / 2, 0, radius + 0.08), radius, slot, sides=14)
    for x in (-0.35 * width, 0.35 * width):
        for y in (-0.12, 0.12):
            m.rod((x, y - 0.02, 0.07), (x, y + 0.02, 0.07), 0.07, "rubber", sides=9)
    top = 2 * radius + 0.08
    m.box((-0.3 * width, -0.1, top - 0.03), (0.05 * width, 0.1, height), "dark")
    m.rod((0.2 * width, -0.08, top + 0.08), (0.2 * width, 0.08, top + 0.08), 0.09, "metal", sides=12)
    m.rod((-width / 2, 0.1, top), (width / 2, 0.1, top + 0.1), 0.012, "metal", sides=6)


def _shop_vacuum(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    radius, height = size[0] / 2, size[2]
    m.turned([(0.8 * radius, 0.07), (radius, 0.12), (radius, 0.6 * height)], "metal", sides=14)
    m.turned(
        [(1.04 * radius, 0.6 * height), (radius, 0.8 * height), (0.5 * radius, height), (0, height)], "dark", sides=14
    )
    for angle in np.arange(4) * np.pi / 2 + 0.78:
        x, y = radius * np.cos(angle), radius * np.sin(angle)
        m.rod((x, y, 0), (x, y, 0.1), 0.03, "rubber", sides=7)
    hose = [(0, radius + 0.12 * np.sin(t), 0.5 * height + 0.14 * np.cos(t)) for t in np.linspace(0, np.pi, 6)]
    for start, end in zip(hose[:-1], hose[1:], strict=True):
        m.rod(start, end, 0.025, "rubber", sides=7)


def _stool(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    radius, height = size[0] / 2, size[2]
    m.turned([(0, height - 0.05), (radius, height - 0.05), (radius, height), (0, height)], "wood", sides=14)
    for angle in np.arange(3) * 2 * np.pi / 3:
        out = np.array([np.cos(angle), np.sin(angle), 0])
        m.rod(1.1 * radius * out, 0.7 * radius * out + (0, 0, height - 0.05), 0.018, "wood", sides=6)


def _tool_box(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    slot = ("accent", "plastic", "dark")[int(rng.integers(3))]
    half, top = depth / 2, 0.75 * height
    m.prism([(-half, 0), (half, 0), (half, 0.6 * top), (0.5 * half, top), (-0.5 * half, top), (-half, 0.6 * top)],
            -width / 2, width / 2, slot)  # fmt: skip
    for x in (-0.25 * width, 0.25 * width):
        m.rod((x, 0, top), (x, 0, height), 0.007, "steel", sides=5)
    m.rod((-0.3 * width, 0, height), (0.3 * width, 0, height), 0.012, "dark", sides=6)


def _paint_can(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    radius, height = size[0] / 2, size[2]
    m.turned([(radius, 0), (radius, height), (0.9 * radius, height), (0.88 * radius, height - 0.01)], "steel", sides=14)
    m.turned([(0.88 * radius, height - 0.01), (0, height - 0.01)], "metal", sides=14)
    m.turned([(1.01 * radius, 0.12 * height), (1.01 * radius, 0.85 * height)], any_color(rng), sides=14)


def _workshop_base(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    m.box((-width / 2 + 0.1, -depth / 2 + 0.1, 0.15), (width / 2 - 0.1, depth / 2 - 0.1, 0.18), "wood")
    unit = m.at(-0.25 * width, 0, 0.18)
    unit.box((-0.24, -0.3, 0), (0.24, depth / 2 - 0.12, height - 0.2), "frame")
    for low in np.arange(3) * (height - 0.24) / 3:
        front(unit, (-0.24, float(low)), (0.24, float(low) + (height - 0.24) / 3), depth / 2 - 0.1)
    for x in (0.1, 0.35):
        can = m.at(x * width, depth / 2 - 0.3, 0.18)
        _paint_can(can, (0.2, 0.2, 0.22), rng)


WORKSHOP = (
    FurnishingKind("workbench", (1.3, 0.65, 0.85), (1.9, 0.75, 0.95), _workbench),
    FurnishingKind("tool_chest", (0.6, 0.45, 0.85), (0.9, 0.5, 1.15), _tool_chest),
    FurnishingKind("pegboard", (0.9, 0.05, 0.6), (1.6, 0.05, 0.9), _pegboard, is_flat=True),
    FurnishingKind("bin_wall", (0.8, 0.18, 0.6), (1.2, 0.2, 0.9), _bin_wall),
    FurnishingKind("drill_press", (0.32, 0.44, 0.9), (0.32, 0.44, 1.1), _drill_press),
    FurnishingKind("sawhorse", (0.8, 0.5, 0.6), (1.0, 0.55, 0.7), _sawhorse),
    FurnishingKind("lumber_stack", (1.4, 0.4, 0.3), (2.0, 0.6, 0.3), _lumber_stack),
    FurnishingKind("compressor", (0.6, 0.4, 0.6), (0.8, 0.4, 0.75), _compressor),
    FurnishingKind("shop_vacuum", (0.38, 0.5, 0.6), (0.44, 0.5, 0.75), _shop_vacuum),
    FurnishingKind("stool", (0.32, 0.32, 0.45), (0.36, 0.36, 0.65), _stool),
    FurnishingKind("tool_box", (0.36, 0.2, 0.22), (0.5, 0.24, 0.28), _tool_box),
    FurnishingKind("paint_can", (0.16, 0.16, 0.18), (0.18, 0.18, 0.2), _paint_can),
    FurnishingKind("workshop_base", (1, 1, 0.7), (1, 1, 0.7), _workshop_base),
)
