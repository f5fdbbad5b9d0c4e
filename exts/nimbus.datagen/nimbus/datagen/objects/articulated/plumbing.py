"""Plumbing: a handwheel valve, and a faucet with a lever."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.files.quantities import Metres, Radians, Range
from nimbus.datagen.files.strict_yaml import StrictModel
from nimbus.datagen.objects.articulated.assembly import Assembly, Link, hinge
from nimbus.datagen.objects.articulated.solids import Solids, TextureMapping
from nimbus.datagen.objects.model import Handle

_DOWN = np.array((0.0, 0.0, -1.0))
_SPOKES = 3


class Valve(StrictModel):
    """Pipe with a handwheel, ``wheel``, that opens counter-clockwise; size is pipe length, base depth and height."""

    family: Literal["valve"]
    radius: Range[Metres] = (0.05, 0.062)
    rim: Metres = 0.014
    range: Annotated[Radians, Field(gt=0.2, le=5.0)] = np.radians(120)

    def assemble(self, size: FloatArray, rng: np.random.Generator) -> Assembly:
        """Assemble one variant of a given size [m]."""
        width, depth, height = size
        looks = TextureMapping(
            {"pipe": (width, depth), "flange": (0.1, 0.1), "wheel": (0.1, 0.1), "stem": (0.02, 0.05)}
        )
        base, x = Solids(looks), depth / 2
        pipe, level = 0.28 * depth, 0.4 * depth
        base.rod((x, -width / 2, level), (x, width / 2, level), pipe, "pipe", sides=24)
        for y in (-width / 2, width / 2):
            inner = y - np.sign(y) * 0.014
            base.rod((x, y, level), (x, inner, level), level, "flange", sides=24)
        base.cone((x, 0, level + 0.6 * pipe), (x, 0, level + pipe + 0.02), (0.026, 0.018), "flange")
        base.rod((x, 0, level), (x, 0, height - 0.012), 0.007, "stem")
        radius = float(rng.uniform(*self.radius))
        wheel, hub = Solids(looks), np.array((x, 0.0, height - 0.008))
        wheel.wheel(hub, radius, self.rim, "wheel")
        wheel.rod(hub - (0, 0, 0.008), hub + (0, 0, 0.008), 0.013, "wheel")
        handles = []
        for place in range(_SPOKES):
            angle = np.pi / 2 + 2 * np.pi * place / _SPOKES
            wheel.rod(hub, hub + radius * np.array((np.cos(angle), np.sin(angle), 0)), 0.0045, "wheel", sides=10)
        for place in range(2 * _SPOKES):
            angle = np.pi / 2 + 2 * np.pi * (place // 2 + (0.33, 0.67)[place % 2]) / _SPOKES
            out = np.array((np.cos(angle), np.sin(angle), 0.0))
            handles.append(
                Handle(
                    position=hub + radius * out,
                    along=np.array((-out[1], out[0], 0.0)),
                    approach=_DOWN,
                    width=self.rim,
                    length=0.0,
                    turns=(-0.3, 0.3),
                    round=False,
                )
            )
        joint = hinge((0, 0, 1), hub, limit=self.range, damping=0.02, friction=0.1)
        return Assembly(looks=looks, base=base, links=[Link(name="wheel", solids=wheel, joint=joint, handles=handles)])


class Faucet(StrictModel):
    """Tap with a spout and a ``lever`` on top that rotates about the vertical; size is base width, reach and height."""

    family: Literal["faucet"]
    lever: Range[Metres] = (0.09, 0.11)
    range: Annotated[Radians, Field(gt=0.2, le=3.0)] = np.radians(90)

    def assemble(self, size: FloatArray, rng: np.random.Generator) -> Assembly:
        """Assemble one variant of a given size [m]."""
        width, reach, height = size
        looks = TextureMapping(
            {"metal": (reach, height), "base": (width, width), "lever": (0.1, 0.02), "mark": (0.02, 0.02)}
        )
        base, x = Solids(looks), width / 2
        body = height - 0.035
        base.rod((x, 0, 0), (x, 0, 0.012), width / 2, "base", sides=28)
        base.cone((x, 0, 0.012), (x, 0, body), (0.026, 0.021), "metal", sides=24)
        knee = np.array((x + 0.55 * reach, 0.0, 0.82 * body))
        base.rod((x, 0, 0.6 * body), knee, 0.0125, "metal", sides=18)
        tip = np.array((x + reach, 0.0, 0.74 * body))
        base.rod(knee - (0.004, 0, 0), tip, 0.0125, "metal", sides=18)
        base.rod(tip + (-0.008, 0, 0.004), tip - (0.008, 0, 0.028), 0.0115, "metal", sides=18)
        lever, length = Solids(looks), float(rng.uniform(*self.lever))
        lever.cone((x, 0, body + 0.001), (x, 0, height - 0.012), (0.021, 0.018), "lever", sides=24)
        start, end = np.array((x, 0.0, height - 0.016)), np.array((x - length, 0.0, height + 0.004))
        lever.rod(start, end, 0.007, "lever")
        lever.rod((x, 0, height - 0.0125), (x, 0, height - 0.010), 0.008, "mark", touch=False)
        along = (end - start) / np.linalg.norm(end - start)
        handle = Handle(
            position=end - 0.026 * along,
            along=along,
            approach=_DOWN + (_DOWN @ -along) * along,
            width=0.014,
            length=0.02,
            turns=(-0.4, 0.4),
            round=False,
        )
        joint = hinge((0, 0, 1), (x, 0, body), limit=self.range, damping=0.02, friction=0.08)
        return Assembly(looks=looks, base=base, links=[Link(name="lever", solids=lever, joint=joint, handles=[handle])])
