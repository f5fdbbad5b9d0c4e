"""Lidded boxes: an open box and a hinged lid; the lid has a handle and stays at any angle."""

from __future__ import annotations

from typing import Literal

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.files.strict_yaml import StrictModel
from nimbus.datagen.objects.articulated.assembly import Assembly, Link, bar, frame, hinge
from nimbus.datagen.objects.articulated.solids import Solids, TextureMapping
from nimbus.datagen.objects.model import Pressing

_WALL, _LID = 0.007, 0.01
_STANDOFF = 0.036


class LiddedBox(StrictModel):
    """Box with a ``lid`` hinged at the back; size is width, depth, and height without the handle."""

    family: Literal["lidded_box"]

    def assemble(self, size: FloatArray, rng: np.random.Generator) -> Assembly:
        """Assemble one variant of a given size [m]."""
        width, depth, height = size
        half, top = width / 2, height - _LID
        looks = TextureMapping(
            {"case": (width, height), "lid": (width, depth), "handle": (0.1, 0.02), "inside": (width, depth)}
        )
        base = Solids(looks)
        base.box((0, -half, 0), (_WALL, half, top), "case")
        base.box((depth - _WALL, -half, 0), (depth, half, top), "case")
        base.box((_WALL, -half, 0), (depth - _WALL, -half + _WALL, top), "case")
        base.box((_WALL, half - _WALL, 0), (depth - _WALL, half, top), "case")
        base.box((_WALL, -half + _WALL, 0), (depth - _WALL, half - _WALL, _WALL), "inside")
        for y in (-0.3 * width, 0.3 * width):
            base.rod((depth + 0.003, y - 0.015, top), (depth + 0.003, y + 0.015, top), 0.005, "handle", touch=False)
        room = np.array([(_WALL, -half + _WALL, _WALL), (depth - _WALL, half - _WALL, top)])
        return Assembly(
            looks=looks,
            base=base,
            links=[_lid(looks, size)],
            frames={"opening": frame((depth / 2, 0, top), (0, 0, 1))},
            cavities={"opening": room},
        )


def _lid(looks: TextureMapping, size: FloatArray) -> Link:
    width, depth, height = size
    half, low = width / 2, height - _LID + 0.001
    solids = Solids(looks)
    solids.box((-0.004, -half - 0.003, low), (depth, half + 0.003, height), "lid", bevel=0.002)
    length = min(0.1, 0.5 * width)
    handle = bar(
        solids,
        (0.03, -length / 2, height),
        (0.03, length / 2, height),
        (0, 0, -1),
        standoff=_STANDOFF,
        turns=(-1.3, 0.5),
    )
    return Link(
        name="lid",
        solids=solids,
        density=0.4,
        joint=hinge((0, 1, 0), (depth + 0.003, 0, low), limit=np.radians(100), damping=0.05, friction=0.55),
        handles=[handle],
        pressings=[
            Pressing(position=np.array((0.02, y, height)), normal=np.array((0.0, 0, 1)))
            for y in (0.35 * width, -0.35 * width)
        ],
    )
