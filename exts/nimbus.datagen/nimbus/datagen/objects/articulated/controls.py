"""Controls on a panel: a rotary knob, a push button and a lever."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.files.quantities import Metres, Radians, Range
from nimbus.datagen.files.strict_yaml import StrictModel
from nimbus.datagen.objects.articulated.assembly import Assembly, Link, hinge, slide
from nimbus.datagen.objects.articulated.solids import Solids, TextureMapping
from nimbus.datagen.objects.model import Handle, Pressing

_DOWN = np.array((0.0, 0.0, -1.0))


def _panel(looks: TextureMapping, size: FloatArray) -> Solids:
    """Build a box with a rim around its face."""
    width, depth, height = size
    solids = Solids(looks)
    solids.box((0, -width / 2, 0), (depth, width / 2, height), "panel", bevel=0.004)
    rim = 0.006
    for low, high in (((0, -0.5), (0, 0.5)), ((1, -0.5), (1, 0.5)), ((0, -0.5), (1, -0.5)), ((0, 0.5), (1, 0.5))):
        corners = np.array([low, high]) * (depth - 2 * rim, width - 2 * rim) + (rim, 0)
        lower = [*(corners.min(axis=0) - rim / 2), height - 0.001]
        upper = [*(corners.max(axis=0) + rim / 2), height + 0.002]
        solids.box(lower, upper, "trim", touch=False)
    return solids


class Knob(StrictModel):
    """Panel with a rotary ``knob`` that turns clockwise from 0; the declared size is the panel's."""

    family: Literal["knob"]
    radius: Range[Metres] = (0.02, 0.026)
    range: Annotated[Radians, Field(gt=0.2, le=5.0)] = np.radians(180)

    def assemble(self, size: FloatArray, rng: np.random.Generator) -> Assembly:
        """Assemble one variant.

        Args:
            size: (3,) width, depth and height of the panel [m].
            rng: Random stream of the variant.
        """
        looks = TextureMapping(
            {"panel": (size[0], size[1]), "trim": (0.1, 0.01), "knob": (0.05, 0.05), "mark": (0.01, 0.01)}
        )
        base = _panel(looks, size)
        radius, x, z = float(rng.uniform(*self.radius)), size[1] / 2, size[2]
        for angle in np.linspace(-self.range, 0, 9):
            out = np.array((np.cos(angle), np.sin(angle), 0.0))
            base.rod(
                (x, 0, z) + (radius + 0.009) * out, (x, 0, z) + (radius + 0.016) * out, 0.0012, "mark", touch=False
            )
        knob = Solids(looks)
        knob.cone((x, 0, z + 0.001), (x, 0, z + 0.014), (radius, 0.92 * radius), "knob")
        half, top = 0.006, z + 0.038
        knob.box((x - 0.95 * radius, -half, z + 0.012), (x + 0.95 * radius, half, top), "knob", bevel=0.002)
        knob.box(
            (x + 0.3 * radius, -0.0015, top - 0.001), (x + 0.9 * radius, 0.0015, top + 0.0006), "mark", touch=False
        )
        handle = Handle(
            position=np.array((x, 0, top - 0.011)),
            along=np.array((1.0, 0, 0)),
            approach=_DOWN,
            width=2 * half,
            length=0.0,
            turns=(0.0, 0.0),
            round=False,
        )
        joint = hinge((0, 0, -1), (x, 0, z), limit=self.range, damping=0.005, friction=0.03)
        return Assembly(looks=looks, base=base, links=[Link(name="knob", solids=knob, joint=joint, handles=[handle])])


class Button(StrictModel):
    """Panel with a spring-loaded ``button``; the declared size is the panel's."""

    family: Literal["button"]
    radius: Range[Metres] = (0.02, 0.03)
    travel: Metres = Field(0.008, gt=0.002, le=0.03)

    def assemble(self, size: FloatArray, rng: np.random.Generator) -> Assembly:
        """Assemble one variant.

        Args:
            size: (3,) width, depth and height of the panel [m].
            rng: Random stream of the variant.
        """
        looks = TextureMapping(
            {"panel": (size[0], size[1]), "trim": (0.1, 0.01), "button": (0.05, 0.05), "collar": (0.1, 0.01)}
        )
        base = _panel(looks, size)
        radius, x, z = float(rng.uniform(*self.radius)), size[1] / 2, size[2]
        base.wheel((x, 0, z + 0.002), radius + 0.006, 0.008, "collar")
        button, top = Solids(looks), z + self.travel + 0.012
        button.rod((x, 0, z + self.travel + 0.001), (x, 0, top - 0.004), radius, "button", sides=24)
        button.cone((x, 0, top - 0.004), (x, 0, top), (radius, 0.7 * radius), "button", sides=24)
        joint = slide(_DOWN, (x, 0, top), limit=self.travel, damping=4.0, friction=0.0, stiffness=600.0)
        pressing = Pressing(position=np.array((x, 0, top)), normal=-_DOWN)
        return Assembly(
            looks=looks, base=base, links=[Link(name="button", solids=button, joint=joint, pressings=[pressing])]
        )


class Switch(StrictModel):
    """Panel with a ``lever`` that moves from the front to the back; the declared size is the panel's."""

    family: Literal["switch"]
    range: Annotated[Radians, Field(gt=0.2, le=2.5)] = np.radians(80)

    def assemble(self, size: FloatArray, rng: np.random.Generator) -> Assembly:
        """Assemble one variant.

        Args:
            size: (3,) width, depth and height of the panel [m].
            rng: Random stream of the variant.
        """
        looks = TextureMapping(
            {"panel": (size[0], size[1]), "trim": (0.1, 0.01), "lever": (0.02, 0.08), "tip": (0.03, 0.03)}
        )
        base = _panel(looks, size)
        x, z, half = size[1] / 2, size[2], self.range / 2
        for y in (-0.016, 0.016):
            base.box((x - 0.02, y - 0.004, z), (x + 0.02, y + 0.004, z + 0.02), "trim")
        lever, foot = Solids(looks), np.array((x, 0.0, z + 0.012))
        out = np.array((-np.sin(half), 0.0, np.cos(half)))
        lever.rod(foot - 0.004 * out, foot + 0.075 * out, 0.0055, "lever")
        tip = foot + 0.078 * out
        lever.rod(tip - (0, 0.022, 0), tip + (0, 0.022, 0), 0.0075, "tip")
        lever.rod(foot + (0, -0.011, 0), foot + (0, 0.011, 0), 0.007, "lever", touch=False)
        handle = Handle(
            position=tip,
            along=np.array((0.0, 1.0, 0.0)),
            approach=-out,
            width=0.015,
            length=0.0,
            turns=(-0.6, 0.9),
            round=True,
        )
        joint = hinge((0, 1, 0), foot, limit=self.range, damping=0.01, friction=0.08)
        return Assembly(looks=looks, base=base, links=[Link(name="lever", solids=lever, joint=joint, handles=[handle])])
