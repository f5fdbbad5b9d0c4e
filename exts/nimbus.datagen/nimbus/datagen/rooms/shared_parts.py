"""Parts and colors shared by the furniture of several families."""

from __future__ import annotations

import colorsys

import numpy as np

from nimbus.datagen.rooms.modeling import Color, Modeler


def front(m: Modeler, low: tuple[float, float], high: tuple[float, float], y: float, *, handle: str = "bar") -> None:
    """Add a door or drawer front between two corners (x, z) [m]; ``handle`` is ``bar``, ``knob``, ``side`` or none."""
    gap = 0.002
    m.box((low[0] + gap, y - 0.019, low[1] + gap), (high[0] - gap, y, high[1] - gap), "front", omit=("back",))
    middle = (low[0] + high[0]) / 2
    if handle == "bar":
        half, z = 0.3 * (high[0] - low[0]), high[1] - 0.05
        m.rod((middle - half, y + 0.03, z), (middle + half, y + 0.03, z), 0.006, "metal", sides=6)
        for x in (middle - 0.8 * half, middle + 0.8 * half):
            m.box((x - 0.005, y, z - 0.005), (x + 0.005, y + 0.03, z + 0.005), "metal", omit=("back", "front"))
    elif handle == "knob":
        m.rod((high[0] - 0.05, y, high[1] - 0.1), (high[0] - 0.05, y + 0.028, high[1] - 0.1), 0.014, "metal", sides=8)
    elif handle == "side":
        m.rod((high[0] - 0.04, y + 0.03, high[1] - 0.3), (high[0] - 0.04, y + 0.03, high[1] - 0.08), 0.006, "metal")


def any_color(rng: np.random.Generator, *, value: tuple[float, float] = (0.25, 0.85)) -> Color:
    """Draw a color of a printed or dyed material."""
    hue, is_grey = float(rng.uniform()), rng.uniform() < 0.4
    saturation = float(rng.uniform(0.02, 0.2) if is_grey else rng.uniform(0.25, 0.65))
    return colorsys.hsv_to_rgb(hue, saturation, float(rng.uniform(*value)))
