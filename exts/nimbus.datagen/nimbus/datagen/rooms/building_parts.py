"""Parts of the building: walls with openings, windows, doors, skirting, lamps, and wall decorations."""

from __future__ import annotations

import numpy as np

from nimbus.datagen.rooms.furnishing import FurnishingKind, Size
from nimbus.datagen.rooms.modeling import Modeler

WALL = 0.12
"""Thickness of walls, which is also the depth of windows and doors [m]."""
_FRAME = 0.055
"""Width of the frames of windows and doors [m]."""
_SKIRTING = (0.012, 0.09)
"""Thickness and height of the skirting [m]."""


def _frame(m: Modeler, width: float, height: float, *, bottom: bool) -> None:
    """Add a frame around the inside of an opening, and the reveal behind it."""
    half, f = width / 2, _FRAME
    for x in (-half, half - f):
        m.box((x, -WALL, 0), (x + f, 0.015, height), "trim", omit=("bottom", "back"))
    m.box((-half, -WALL, height - f), (half, 0.015, height), "trim", omit=("back",))
    if bottom:
        m.box((-half, -WALL, 0), (half, 0.04, f), "trim", omit=("back",))


def _window(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, _, height = size
    _frame(m, width, height, bottom=True)
    panes = int(rng.integers(1, 4))
    for place in range(1, panes):
        x = -width / 2 + width * place / panes
        m.box((x - 0.02, -WALL, 0), (x + 0.02, -0.03, height), "trim", omit=("bottom", "top", "back"))
    if rng.uniform() < 0.4:
        m.box((-width / 2, -WALL, 0.6 * height), (width / 2, -0.04, 0.6 * height + 0.03), "trim", omit=("back",))
    m.lit_panel((-width / 2, -WALL, 0), (width / 2, -WALL, height), "outdoors")
    if rng.uniform() < 0.5:
        drop = float(rng.uniform(0.15, 0.5)) * height
        for z in np.arange(height - 0.04, height - drop, -0.05):
            m.box((-width / 2, 0.016, z - 0.036), (width / 2, 0.022, z), "white", omit=("back", "left", "right"))
    m.box((-width / 2 - 0.05, 0, -0.03), (width / 2 + 0.05, 0.1, 0), "trim", omit=("back",))


def _door(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, _, height = size
    _frame(m, width, height, bottom=False)
    half, top = width / 2 - _FRAME, height - _FRAME
    glazed = rng.uniform() < 0.3
    m.box((-half, -0.06, 0), (half, -0.025, top), "front", omit=("bottom", "back"))
    if glazed:
        m.lit_panel((-half + 0.12, -0.024, 0.9), (half - 0.12, -0.024, top - 0.12), "outdoors")
    else:
        for low, high in ((0.2, 0.85), (1.0, top - 0.15)):
            m.box((-half + 0.13, -0.025, low), (half - 0.13, -0.018, high), "front", omit=("back",))
    m.rod((half - 0.06, -0.03, 1.02), (half - 0.06, 0.035, 1.02), 0.01, "metal", sides=6)
    m.rod((half - 0.06, 0.03, 1.02), (half - 0.18, 0.03, 1.02), 0.01, "metal", sides=6)


def _roller_door(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, _, height = size
    _frame(m, width, height, bottom=False)
    rib = float(rng.uniform(0.08, 0.16))
    levels = np.append(np.arange(0, height - 0.02, rib), height)
    for low, high in zip(levels[:-1], levels[1:], strict=True):
        section = [(-0.09, low), (-0.05, low), (-0.05, high - 0.015), (-0.07, high), (-0.09, high)]
        m.prism(section, -width / 2, width / 2, "metal")
    m.box((-0.12, -0.05, 0.12), (0.12, -0.01, 0.15), "dark")


def _skirting(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    m.block(size, "trim", omit=("bottom", "back"))


def _ceiling(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, _ = size
    corners = [(-width / 2, -depth / 2, 0), (-width / 2, depth / 2, 0), (width / 2, depth / 2, 0)]
    m.quads(np.array([[*corners, (width / 2, -depth / 2, 0)]]), "ceiling")


def _ceiling_lamp(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    m.box((-width / 2, -depth / 2, -height), (width / 2, depth / 2, 0), "white", omit=("top",))
    m.box((-width / 2 + 0.02, -depth / 2 + 0.02, -height - 0.002), (width / 2 - 0.02, depth / 2 - 0.02, 0), "lamp")


def _pendant_lamp(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    radius, height = size[0] / 2, size[2]
    m.rod((0, 0, -height), (0, 0, 0), 0.006, "dark", sides=5)
    outside = [(radius, -height - 0.2), (radius * 0.9, -height - 0.12), (0.03, -height), (0, -height)]
    m.turned(outside, "accent", sides=14)
    m.turned([(0, -height - 0.19), (0.05, -height - 0.17), (0.02, -height - 0.1)], "lamp", sides=8)


def _radiator(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    m.box((-width / 2, -depth / 2, 0.12), (width / 2, 0, height), "white", omit=("back",))
    count = max(4, int(width / 0.09))
    for x in np.linspace(-width / 2, width / 2 - 0.05, count):
        m.box((x, 0, 0.14), (x + 0.05, depth / 2, height - 0.02), "white", omit=("back",))
    m.rod((width / 2 - 0.05, 0, 0), (width / 2 - 0.05, 0, 0.14), 0.012, "metal", sides=6)


def _picture(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, _, height = size
    m.box((-width / 2, -0.01, 0), (width / 2, 0.015, height), "dark", omit=("back",))
    m.box((-width / 2 + 0.03, 0, 0.03), (width / 2 - 0.03, 0.017, height - 0.03), "white", omit=("back",))
    for _ in range(int(rng.integers(3, 7))):
        low = rng.uniform((-0.42, 0.1), (0.1, 0.5)) * (width, height)
        high = low + rng.uniform(0.1, 0.3, 2) * (width, height)
        high = np.minimum(high, (0.44 * width, 0.9 * height))
        red, green, blue = (float(value) for value in rng.uniform(0.1, 0.9, 3))
        m.box(
            (low[0], 0, low[1]),
            (high[0], 0.0175 + float(rng.uniform(0, 0.002)), high[1]),
            (red, green, blue),
            omit=("back",),
        )


def _clock(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    radius = size[0] / 2
    face = m.at(0, 0, radius, pitch=-np.pi / 2)
    face.turned([(0, 0), (radius, 0), (radius, 0.03), (radius - 0.015, 0.035)], "dark", sides=18)
    face.turned([(radius - 0.014, 0.025), (0, 0.025)], "white", sides=18)
    for length, angle in ((0.5, rng.uniform(0, 6.28)), (0.75, rng.uniform(0, 6.28))):
        end = (radius * length * np.cos(angle), radius * length * np.sin(angle), 0.028)
        face.rod((0, 0, 0.028), end, 0.004, "dark", sides=4)


def _socket(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    m.box((-0.04, -0.005, 0), (0.04, 0.01, 0.08), "white", omit=("back",))
    m.box((-0.02, 0, 0.02), (0.02, 0.011, 0.06), "dark", omit=("back",))


def _rug(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    m.block(size, "accent")
    m.box((-width / 2 + 0.05, -depth / 2 + 0.05, 0), (width / 2 - 0.05, depth / 2 - 0.05, height + 0.001), "fabric")


def _column(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    m.block(size, "wall", omit=("bottom", "top"))


def _curtain(m: Modeler, size: Size, rng: np.random.Generator) -> None:
    width, depth, height = size
    count = max(3, int(width / 0.09))
    x = np.linspace(-width / 2, width / 2, 2 * count + 1)
    y = np.where(np.arange(len(x)) % 2, depth, 0.02)
    quads = [
        [(x[i], y[i], 0), (x[i], y[i], height), (x[i + 1], y[i + 1], height), (x[i + 1], y[i + 1], 0)]
        for i in range(len(x) - 1)
    ]
    m.quads(np.array(quads), "fabric")
    m.rod((-width / 2 - 0.1, 0.05, height), (width / 2 + 0.1, 0.05, height), 0.012, "metal", sides=6)


BUILDING = (
    FurnishingKind("window", (0.9, WALL, 0.9), (1.8, WALL, 1.4), _window, is_flat=True),
    FurnishingKind("door", (0.85, WALL, 2.02), (1.0, WALL, 2.1), _door, is_flat=True),
    FurnishingKind("roller_door", (2.0, WALL, 2.1), (2.6, WALL, 2.3), _roller_door, is_flat=True),
    FurnishingKind("skirting", (1, *_SKIRTING), (1, *_SKIRTING), _skirting, is_flat=True),
    FurnishingKind("ceiling", (1, 1, 0), (1, 1, 0), _ceiling, is_flat=True),
    FurnishingKind("ceiling_lamp", (0.6, 0.3, 0.05), (1.5, 0.6, 0.09), _ceiling_lamp, is_flat=True),
    FurnishingKind("pendant_lamp", (0.25, 0.25, 0.3), (0.45, 0.45, 0.7), _pendant_lamp, is_flat=True),
    FurnishingKind("radiator", (0.7, 0.1, 0.55), (1.4, 0.14, 0.7), _radiator),
    FurnishingKind("picture", (0.3, 0.02, 0.3), (0.8, 0.02, 0.6), _picture, is_flat=True),
    FurnishingKind("clock", (0.26, 0.04, 0.26), (0.36, 0.04, 0.36), _clock, is_flat=True),
    FurnishingKind("socket", (0.08, 0.01, 0.08), (0.08, 0.01, 0.08), _socket, is_flat=True),
    FurnishingKind("rug", (1.2, 0.8, 0.008), (2.0, 1.3, 0.012), _rug, is_flat=True),
    FurnishingKind("column", (0.3, 0.3, 1.0), (0.4, 0.4, 1.0), _column, is_flat=True),
    FurnishingKind("curtain", (0.35, 0.07, 1.6), (0.6, 0.1, 2.0), _curtain),
)
