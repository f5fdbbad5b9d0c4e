"""Laptops: a flat base with keys, and a lid with the screen; the lid stays at any angle."""

from __future__ import annotations

from typing import Literal

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.files.strict_yaml import StrictModel
from nimbus.datagen.objects.articulated.assembly import Assembly, Link, hinge
from nimbus.datagen.objects.articulated.solids import Solids, TextureMapping
from nimbus.datagen.objects.model import Pressing

_LID = 0.008


class Laptop(StrictModel):
    """Base with a ``lid`` that is closed at 0; size is width, depth, and height when closed."""

    family: Literal["laptop"]

    def assemble(self, size: FloatArray, rng: np.random.Generator) -> Assembly:
        """Assemble one variant.

        Args:
            size: (3,) width, depth, and height when closed [m].
            rng: Unused: all laptops of a size are equal.
        """
        width, depth, height = size
        half, top = width / 2, height - _LID
        looks = TextureMapping(
            {
                "shell": (width, depth),
                "keys": (0.9 * width, 0.5 * depth),
                "pad": (0.35 * width, 0.3 * depth),
                "screen": (width, depth),
                "bezel": (width, depth),
                "hinge": (0.02, 0.02),
            }
        )
        base = Solids(looks)
        base.box((0, -half, 0), (depth, half, top), "shell", bevel=0.003)
        keys = ((0.4 * depth, -0.44 * width, top - 0.001), (0.88 * depth, 0.44 * width, top + 0.0012))
        base.box(*keys, "keys", bevel=0.0004, touch=False)
        pad = ((0.06 * depth, -0.17 * width, top - 0.001), (0.35 * depth, 0.17 * width, top + 0.0006))
        base.box(*pad, "pad", bevel=0.0002, touch=False)
        axle = top + 0.004
        for y in (-0.36 * width, 0.36 * width):
            base.rod((depth - 0.006, y - 0.02, axle), (depth - 0.006, y + 0.02, axle), 0.0045, "hinge", touch=False)
        lid = Solids(looks)
        low, high = top + 0.002, top + _LID
        lid.box((0, -half, low), (depth - 0.012, half, high), "shell", bevel=0.002)
        lid.box((0.004, -half + 0.004, low - 0.0006), (depth - 0.016, half - 0.004, low), "bezel", bevel=0, touch=False)
        screen = ((0.012, -half + 0.012, low - 0.0012), (depth - 0.03, half - 0.012, low))
        lid.box(*screen, "screen", bevel=0, touch=False)
        joint = hinge((0, 1, 0), (depth - 0.006, 0, axle), limit=np.radians(130), damping=0.03, friction=0.42)
        pressings = [
            Pressing(position=np.array((0.02, y, high)), normal=np.array((0.0, 0, 1))) for y in (0.0, 0.06, -0.06)
        ]
        return Assembly(
            looks=looks, base=base, links=[Link(name="lid", solids=lid, density=0.5, joint=joint, pressings=pressings)]
        )
