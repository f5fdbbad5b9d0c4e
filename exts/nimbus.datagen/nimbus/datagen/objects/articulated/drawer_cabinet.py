"""Drawer cabinets: a case with drawers that slide out to the front."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.files.quantities import Range
from nimbus.datagen.files.strict_yaml import StrictModel
from nimbus.datagen.objects.articulated.assembly import Assembly, Link, bar, frame, slide
from nimbus.datagen.objects.articulated.solids import Solids, TextureMapping
from nimbus.datagen.objects.model import Pressing

_WALL, _BOARD = 0.012, 0.006
"""Thickness of the case, and of a drawer's tray [m]."""
_FRONT = 0.016
_GAP = 0.003
_STANDOFF = 0.042


class DrawerCabinet(StrictModel):
    """Case with one to three drawers, ``drawer_0`` on top; size is width, depth and height."""

    family: Literal["drawer_cabinet"]
    drawers: Range[Annotated[int, Field(ge=1, le=3)]] = (1, 3)

    def assemble(self, size: FloatArray, rng: np.random.Generator) -> Assembly:
        """Assemble one variant.

        Args:
            size: (3,) width, depth and height [m].
            rng: Random stream of the variant.
        """
        width, depth, height = size
        count = int(rng.integers(self.drawers[0], self.drawers[1] + 1))
        sizes = {"case": (depth, height), "front": (width, height / count), "handle": (0.1, 0.02), "tray": (depth, 0.1)}
        looks = TextureMapping(sizes)
        case = _case(looks, size, count)
        opening = (height - _WALL * (count + 1)) / count
        assembly = Assembly(looks=looks, base=case)
        for place in range(count):
            top = height - _WALL - place * (opening + _WALL)
            assembly.links.append(_drawer(looks, f"drawer_{place}", width, depth, (top - opening, top)))
        return assembly


def _case(looks: TextureMapping, size: FloatArray, count: int) -> Solids:
    width, depth, height = size
    case, half = Solids(looks), width / 2
    case.box((0, -half, 0), (depth, -half + _WALL, height), "case")
    case.box((0, half - _WALL, 0), (depth, half, height), "case")
    case.box((depth - _WALL, -half + _WALL, 0), (depth, half - _WALL, height), "case")
    opening = (height - _WALL * (count + 1)) / count
    for place in range(count + 1):
        low = place * (opening + _WALL)
        case.box((0, -half + _WALL, low), (depth - _WALL, half - _WALL, low + _WALL), "case")
    return case


def _drawer(looks: TextureMapping, name: str, width: float, depth: float, opening: tuple[float, float]) -> Link:
    low, high = opening
    middle, half = (low + high) / 2, width / 2
    solids = Solids(looks)
    solids.box((-_FRONT, -half + 0.002, low - 0.004), (-0.001, half - 0.002, high + 0.004), "front")
    side, back = half - _WALL - _GAP, depth - _WALL - 0.008
    floor, rim = low + _GAP, low + 0.78 * (high - low)
    solids.box((0, -side, floor), (back, side, floor + _BOARD), "tray")
    solids.box((0, -side, floor + _BOARD), (back, -side + _BOARD, rim), "tray")
    solids.box((0, side - _BOARD, floor + _BOARD), (back, side, rim), "tray")
    solids.box((back - _BOARD, -side + _BOARD, floor + _BOARD), (back, side - _BOARD, rim), "tray")
    length = min(0.13, 0.45 * width)
    handle = bar(
        solids,
        (-_FRONT, -length / 2, middle),
        (-_FRONT, length / 2, middle),
        (1, 0, 0),
        standoff=_STANDOFF,
        turns=(0.0, np.pi / 2),
    )
    beside = length / 2 + 0.5 * (half - length / 2)
    reach = 0.7 * depth
    cavity = np.array([(0, -side + _BOARD, floor + _BOARD), (back - _BOARD, side - _BOARD, rim)])
    return Link(
        name=name,
        solids=solids,
        joint=slide((-1, 0, 0), (0, 0, middle), limit=reach, damping=4.0, friction=1.2),
        handles=[handle],
        pressings=[
            Pressing(position=np.array((-_FRONT, y, middle)), normal=np.array((-1.0, 0, 0))) for y in (-beside, beside)
        ],
        frames={"opening": frame((back / 2, 0, rim), (0, 0, 1))},
        cavities={"opening": cavity},
    )
