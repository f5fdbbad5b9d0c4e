"""Furniture and fixtures of offices."""

from __future__ import annotations

import numpy as np

from nimbus.datagen.rooms.furnishing import FurnishingKind, Size
from nimbus.datagen.rooms.modeling import Modeler
from nimbus.datagen.rooms.shared_parts import any_color, front


def boards(m: Modeler, size: Size, levels: int, material: str, *, back: bool = True) -> list[float]:
    """Add an open case with shelves; return the heights of the shelves below the top, the lowest first [m]."""
    width, depth, height = size
    thick = 0.022
    for x in (-width / 2, width / 2 - thick):
        m.box((x, -depth / 2, 0), (x + thick, depth / 2, height), material, omit=("bottom",))
    if back:
        m.box((-width / 2, -depth / 2, 0), (width / 2, -depth / 2 + 0.008, height), material, omit=("bottom", "back"))
    places = [float(z) for z in np.linspace(0.06, height - thick, levels + 1)]
    for z in places:
        m.box((-width / 2, -depth / 2, z), (width / 2, depth / 2, z + thick), material, omit=("left", "right", "back"))
    return [z + thick for z in places[:-1]]


def _bookcase(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    levels = max(2, round(height / 0.36))
    room = height / levels - 0.06
    for z in boards(m, size, levels, "wood"):
        x = -width / 2 + 0.03
        while x < width / 2 - 0.1:
            kind = rng.uniform()
            if kind < 0.55:
                for _ in range(int(rng.integers(2, 6))):
                    thick, tall = float(rng.uniform(0.02, 0.05)), room * float(rng.uniform(0.65, 0.95))
                    if x + thick > width / 2 - 0.03:
                        break
                    deep = depth / 2 - float(rng.uniform(0.02, 0.07))
                    sides = ("bottom", "back")
                    m.box((x, -depth / 2 + 0.01, z), (x + thick, deep, z + tall), any_color(rng), omit=sides)
                    x += thick + 0.001
            elif kind < 0.75 and x + 0.3 < width / 2:
                m.box((x, -0.1, z), (x + 0.26, 0.1, z + min(0.2, room)), "cardboard", omit=("bottom", "back"))
                x += 0.3
            x += float(rng.uniform(0.02, 0.14))


def _filing_cabinet(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    slot = ("metal", "white", "accent", "dark")[int(rng.integers(4))]
    m.box((-width / 2, -depth / 2, 0.02), (width / 2, depth / 2 - 0.02, height), slot, omit=("bottom", "back"))
    cuts = np.linspace(0.03, height - 0.02, max(2, round(height / 0.33)) + 1)
    for low, high in zip(cuts[:-1], cuts[1:], strict=True):
        m.box((-width / 2 + 0.01, 0, low + 0.005), (width / 2 - 0.01, depth / 2, high - 0.005), slot, omit=("back",))
        m.box((-0.06, depth / 2, high - 0.09), (0.06, depth / 2 + 0.015, high - 0.075), "metal", omit=("back",))
        m.box((-0.04, depth / 2, high - 0.06), (0.04, depth / 2 + 0.003, high - 0.03), "paper", omit=("back",))


def _side_desk(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    m.box((-width / 2, -depth / 2, height - 0.03), (width / 2, depth / 2, height), "wood")
    for x in (-width / 2 + 0.05, width / 2 - 0.09):
        m.box((x, -depth / 2 + 0.05, 0.03), (x + 0.04, -depth / 2 + 0.09, height - 0.03), "frame", omit=("top",))
        m.box((x, depth / 2 - 0.09, 0.03), (x + 0.04, depth / 2 - 0.05, height - 0.03), "frame", omit=("top",))
        m.box((x, -depth / 2 + 0.02, 0), (x + 0.04, depth / 2 - 0.02, 0.03), "frame")
    if rng.uniform() < 0.6:
        pedestal = m.at(width / 2 - 0.3, 0, 0)
        pedestal.box((-0.2, -0.28, 0.05), (0.2, 0.26, 0.58), "white", omit=("bottom", "back"))
        for low in (0.06, 0.24, 0.42):
            front(pedestal, (-0.2, low), (0.2, low + 0.17), 0.28)


def _office_chair(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    height = size[2]
    seat = 0.46
    for angle in np.arange(5) * 2 * np.pi / 5:
        tip = 0.28 * np.array([np.cos(angle), np.sin(angle), 0]) + (0, 0, 0.06)
        m.rod((0, 0, 0.1), tip, 0.018, "dark", sides=5)
        m.rod(tip - (0, 0, 0.06), tip + (0, 0, 0.005), 0.025, "rubber", sides=7)
    m.rod((0, 0, 0.08), (0, 0, seat - 0.06), 0.025, "metal")
    m.box((-0.24, -0.23, seat - 0.06), (0.24, 0.25, seat + 0.02), "fabric")
    back = m.at(0, -0.24, seat + 0.1, pitch=0.12)
    back.box((-0.21, -0.03, 0), (0.21, 0.03, height - seat - 0.1), "fabric")
    m.box((-0.03, -0.29, seat - 0.05), (0.03, -0.25, seat + 0.2), "dark")
    for x in (-0.27, 0.27):
        m.box((x - 0.025, -0.12, seat + 0.2), (x + 0.025, 0.14, seat + 0.225), "dark")
        m.box((x - 0.015, -0.02, seat - 0.04), (x + 0.015, 0.02, seat + 0.2), "dark")


def _monitor(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, _, height = size
    m.box((-0.12, -0.09, 0), (0.12, 0.09, 0.012), "dark")
    m.box((-0.025, -0.05, 0.01), (0.025, -0.025, 0.22), "dark")
    panel = m.at(0, 0, height - 0.6 * width)
    panel.box((-width / 2, -0.03, 0), (width / 2, 0.01, 0.58 * width), "dark")
    panel.box((-width / 2 + 0.012, 0, 0.015), (width / 2 - 0.012, 0.012, 0.565 * width), "screen", omit=("back",))
    for _ in range(int(rng.integers(0, 7))):
        low = rng.uniform((-0.42 * width, 0.06 * width), (0.2 * width, 0.4 * width))
        high = np.minimum(low + rng.uniform((0.05, 0.01), (0.3, 0.12)) * width, (0.46 * width, 0.53 * width))
        panel.box((low[0], 0, low[1]), (high[0], 0.0125, high[1]), any_color(rng), omit=("back",))


def _keyboard(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    slot = ("dark", "white")[int(rng.integers(2))]
    m.block(size, slot)
    for y in np.linspace(-depth / 2 + 0.015, depth / 2 - 0.03, 5):
        m.box((-width / 2 + 0.01, y, height), (width / 2 - 0.01, y + 0.015, height + 0.004), "metal", omit=("bottom",))
    m.box((width / 2 + 0.04, -0.05, 0), (width / 2 + 0.1, 0.05, 0.03), slot)


def _laptop_computer(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, _ = size
    m.block((width, depth, 0.016), "metal")
    m.box((-width / 2 + 0.02, -0.3 * depth, 0.016), (width / 2 - 0.02, 0.1 * depth, 0.018), "dark")
    lid = m.at(0, -depth / 2, 0.016, pitch=0.25)
    lid.box((-width / 2, -0.008, 0), (width / 2, 0, depth), "metal")
    lid.box((-width / 2 + 0.01, 0, 0.012), (width / 2 - 0.01, 0.001, depth - 0.01), "screen", omit=("back",))


def _desk_lamp(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    height = size[2]
    m.turned([(0.08, 0), (0.08, 0.015), (0, 0.025)], "dark", sides=14)
    elbow, head = np.array([0.0, -0.12, 0.6 * height]), np.array([0.0, 0.12, height])
    m.rod((0, 0, 0.02), elbow, 0.008, "metal", sides=6)
    m.rod(elbow, head, 0.008, "metal", sides=6)
    shade = m.at(*(float(value) for value in head), pitch=0.5)
    shade.turned([(0.075, -0.1), (0.03, 0.0), (0, 0.01)], "accent", sides=12)


def _whiteboard(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, _, height = size
    m.box((-width / 2, -0.01, 0), (width / 2, 0.015, height), "metal", omit=("back",))
    m.box((-width / 2 + 0.02, 0, 0.02), (width / 2 - 0.02, 0.016, height - 0.02), "white", omit=("back",))
    m.box((-0.3 * width, 0, -0.01), (0.3 * width, 0.07, 0.01), "metal", omit=("back",))
    for _ in range(int(rng.integers(3, 9))):
        color = ((0.1, 0.15, 0.5), (0.6, 0.1, 0.1), (0.1, 0.1, 0.1))[int(rng.integers(3))]
        x, z = float(rng.uniform(-0.42, 0.1)) * width, float(rng.uniform(0.15, 0.85)) * height
        m.box((x, 0, z), (x + float(rng.uniform(0.08, 0.3)) * width, 0.017, z + 0.012), color, omit=("back",))


def _printer(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    slot = ("white", "dark")[int(rng.integers(2))]
    m.box((-width / 2, -depth / 2, 0), (width / 2, depth / 2, 0.7 * height), slot)
    m.box((-width / 2, -depth / 2, 0.7 * height), (width / 2, 0.2 * depth, height), slot)
    m.box((-0.3 * width, 0.1 * depth, 0.7 * height), (0.3 * width, depth / 2 + 0.06, 0.7 * height + 0.012), "paper")
    m.box(
        (0.2 * width, depth / 2 - 0.08, 0.7 * height), (0.45 * width, depth / 2 - 0.01, 0.7 * height + 0.02), "screen"
    )


def _sofa(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    m.box((-width / 2, -depth / 2, 0.1), (width / 2, depth / 2, 0.3), "fabric")
    m.box((-width / 2, -depth / 2, 0.3), (width / 2, -depth / 2 + 0.22, height), "fabric")
    for x in (-width / 2, width / 2 - 0.18):
        m.box((x, -depth / 2, 0.3), (x + 0.18, depth / 2, 0.6), "fabric")
    inner = width / 2 - 0.19
    for low, high in ((-inner, -0.005), (0.005, inner)):
        m.box((low, -depth / 2 + 0.23, 0.3), (high, depth / 2 + 0.02, 0.44), "fabric")
    for x in (-width / 2 + 0.05, width / 2 - 0.1):
        for y in (-depth / 2 + 0.05, depth / 2 - 0.1):
            m.box((x, y, 0), (x + 0.05, y + 0.05, 0.1), "wood", omit=("bottom", "top"))


def _coat_stand(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    height = size[2]
    m.turned([(0.2, 0), (0.2, 0.03), (0.03, 0.05)], "wood", sides=14)
    m.rod((0, 0, 0.03), (0, 0, height), 0.02, "wood")
    for angle in np.arange(5) * 2 * np.pi / 5:
        out = np.array([np.cos(angle), np.sin(angle), 0])
        m.rod((0, 0, height - 0.2), out * 0.16 + (0, 0, height - 0.1), 0.01, "wood", sides=5)
    if rng.uniform() < 0.7:
        coat = m.at(0.12, 0, height - 1.15)
        coat.turned([(0.17, 0), (0.14, 0.6), (0.1, 0.98), (0.02, 1.03)], any_color(rng, value=(0.15, 0.45)), sides=7)


def _desk_base(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    for side in (-1, 1)[: int(rng.integers(1, 3))]:
        unit = m.at(side * (width / 2 - 0.28), 0, 0)
        unit.box((-0.22, -depth / 2 + 0.12, 0.08), (0.22, depth / 2 - 0.12, height), "carcass", omit=("top",))
        cuts = np.linspace(0.08, height - 0.06, 4)
        for low, high in zip(cuts[:-1], cuts[1:], strict=True):
            front(unit, (-0.22, float(low)), (0.22, float(high)), depth / 2 - 0.1)
    m.box((-width / 2 + 0.06, -depth / 2 + 0.12, 0.25), (width / 2 - 0.06, -depth / 2 + 0.14, height), "carcass")


OFFICE = (
    FurnishingKind("bookcase", (0.7, 0.28, 1.0), (1.1, 0.34, 2.1), _bookcase),
    FurnishingKind("filing_cabinet", (0.42, 0.5, 0.68), (0.48, 0.6, 1.35), _filing_cabinet),
    FurnishingKind("side_desk", (1.3, 0.66, 0.72), (1.7, 0.75, 0.75), _side_desk),
    FurnishingKind("office_chair", (0.6, 0.6, 0.95), (0.6, 0.6, 1.15), _office_chair),
    FurnishingKind("monitor", (0.5, 0.2, 0.46), (0.64, 0.2, 0.54), _monitor),
    FurnishingKind("keyboard", (0.36, 0.13, 0.02), (0.44, 0.15, 0.025), _keyboard),
    FurnishingKind("laptop_computer", (0.3, 0.21, 0.2), (0.36, 0.25, 0.2), _laptop_computer),
    FurnishingKind("desk_lamp", (0.2, 0.3, 0.4), (0.2, 0.3, 0.5), _desk_lamp),
    FurnishingKind("whiteboard", (1.0, 0.05, 0.8), (1.8, 0.05, 1.1), _whiteboard, is_flat=True),
    FurnishingKind("printer", (0.42, 0.36, 0.26), (0.5, 0.44, 0.36), _printer),
    FurnishingKind("sofa", (1.4, 0.8, 0.75), (1.9, 0.9, 0.85), _sofa),
    FurnishingKind("coat_stand", (0.44, 0.44, 1.65), (0.44, 0.44, 1.8), _coat_stand),
    FurnishingKind("desk_base", (1, 1, 0.7), (1, 1, 0.7), _desk_base),
)
