"""Conveyor: a belt between two rollers with a moving surface."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.files.quantities import Metres, Range
from nimbus.datagen.files.strict_yaml import StrictModel
from nimbus.datagen.objects.articulated.assembly import Assembly, Link, slide
from nimbus.datagen.objects.articulated.solids import Solids, TextureMapping

_WALL, _EDGE = 0.012, 0.006
"""Thickness of the sides, and their height above the belt [m]."""
_HEADROOM = 0.16
"""Height of the space above the belt in which objects start [m]."""


class Conveyor(StrictModel):
    """Frame with a ``belt`` that runs to the left, as seen from the front; the size is that of the whole conveyor.

    Objects start in the cavity ``opening``, above the upstream end of the belt.
    """

    family: Literal["conveyor"]
    speed: Range[Annotated[float, Field(ge=0, le=0.5)]] = (0.03, 0.05)
    """Speed of the belt [m/s]."""
    start: Metres = 0.12
    """Length of the upstream end on which objects start [m]."""

    def assemble(self, size: FloatArray, rng: np.random.Generator) -> Assembly:
        """Assemble one variant of a given size [m]."""
        width, depth, height = size
        looks = TextureMapping({"frame": (width, height), "belt": (width, depth), "roller": (0.1, 0.1)})
        base = Solids(looks)
        top = height - _EDGE
        base.box((_WALL, -width / 2 + 0.01, 0), (depth - _WALL, width / 2 - 0.01, top - 0.012), "frame", bevel=0.002)
        for x in (0.0, depth - _WALL):
            base.box((x, -width / 2, 0), (x + _WALL, width / 2, height), "frame", bevel=0.003)
        for y in (-width / 2 + 0.008, width / 2 - 0.008):
            base.rod((_WALL, y, top - 0.008), (depth - _WALL, y, top - 0.008), 0.007, "roller", touch=False)
        belt = Solids(looks)
        belt.box(
            (_WALL + 0.001, -width / 2 + 0.012, top - 0.01), (depth - _WALL - 0.001, width / 2 - 0.012, top), "belt"
        )
        joint = slide((0, 1, 0), (depth / 2, 0, top), limit=1.0, damping=0.0, friction=0.0)
        joint = replace(joint, speed=float(rng.uniform(*self.speed)))
        room = np.array([[2 * _WALL, -width / 2 + 0.03, top], [depth - 2 * _WALL, -width / 2 + 0.03, top + _HEADROOM]])
        room[1, 1] += self.start
        return Assembly(
            looks=looks,
            base=base,
            links=[Link(name="belt", solids=belt, joint=joint, density=8.0)],
            cavities={"opening": room},
        )
