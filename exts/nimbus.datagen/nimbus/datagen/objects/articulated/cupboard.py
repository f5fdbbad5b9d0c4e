"""Cupboards: a case with one hinged door in front and a shelf inside."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.files.strict_yaml import StrictModel
from nimbus.datagen.objects.articulated.assembly import Assembly, Link, bar, frame, hinge
from nimbus.datagen.objects.articulated.solids import Solids, TextureMapping
from nimbus.datagen.objects.model import Pressing

_WALL, _FRONT = 0.012, 0.016
_STANDOFF = 0.045


class Cupboard(StrictModel):
    """Case with a ``door``; size is width, depth and height."""

    family: Literal["cupboard"]
    hinges: Annotated[tuple[Literal["left", "right"], ...], Field(min_length=1)] = ("left", "right")
    shelf: bool = True

    def assemble(self, size: FloatArray, rng: np.random.Generator) -> Assembly:
        """Assemble one variant.

        Args:
            size: (3,) width, depth and height [m].
            rng: Stream that draws the side of the hinge.
        """
        width, depth, height = size
        side = 1.0 if self.hinges[rng.integers(len(self.hinges))] == "left" else -1.0
        looks = TextureMapping(
            {"case": (depth, height), "front": (width, height), "handle": (0.1, 0.02), "inside": (width, depth)}
        )
        case, half = Solids(looks), width / 2
        case.box((0, -half, 0), (depth, -half + _WALL, height), "case")
        case.box((0, half - _WALL, 0), (depth, half, height), "case")
        case.box((depth - _WALL, -half + _WALL, 0), (depth, half - _WALL, height), "inside")
        case.box((0, -half + _WALL, 0), (depth - _WALL, half - _WALL, _WALL), "case")
        case.box((0, -half + _WALL, height - _WALL), (depth - _WALL, half - _WALL, height), "case")
        ceiling = height - _WALL
        if self.shelf:
            ceiling = 0.52 * height
            case.box((0.02, -half + _WALL, ceiling), (depth - _WALL, half - _WALL, ceiling + 0.01), "inside")
        room = np.array([(0.0, -half + _WALL, _WALL), (depth - _WALL, half - _WALL, ceiling)])
        return Assembly(
            looks=looks,
            base=case,
            links=[_door(looks, width, height, side)],
            frames={"opening": frame((0, 0, (_WALL + ceiling) / 2), (-1, 0, 0))},
            cavities={"opening": room},
        )


def _door(looks: TextureMapping, width: float, height: float, side: float) -> Link:
    half, middle = width / 2, height / 2
    solids = Solids(looks)
    solids.box((-_FRONT, -half + 0.001, 0.002), (-0.001, half - 0.001, height - 0.002), "front")
    panel = 0.035
    solids.box(
        (-_FRONT - 0.003, -half + panel, panel), (-_FRONT + 0.001, half - panel, height - panel), "front", touch=False
    )
    y, length = -side * (half - 0.022), min(0.14, 0.5 * height)
    handle = bar(
        solids,
        (-_FRONT, y, middle - length / 2),
        (-_FRONT, y, middle + length / 2),
        (1, 0, 0),
        standoff=_STANDOFF,
        turns=(-1.1, 1.1),
    )
    edge = -side * (half - 0.06)
    return Link(
        name="door",
        solids=solids,
        joint=hinge((0, 0, -side), (0, side * half, middle), limit=np.radians(110), damping=0.12, friction=0.06),
        handles=[handle],
        pressings=[
            Pressing(position=np.array((-_FRONT - 0.003, edge, share * height)), normal=np.array((-1.0, 0, 0)))
            for share in (0.6, 0.8, 0.4)
        ],
    )
