"""Microwave ovens: a box with a door on the left and a panel of buttons beside it."""

from __future__ import annotations

from typing import Literal

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.files.strict_yaml import StrictModel
from nimbus.datagen.objects.articulated.assembly import Assembly, Link, bar, frame, hinge, slide
from nimbus.datagen.objects.articulated.solids import Solids, TextureMapping
from nimbus.datagen.objects.model import Pressing

_WALL, _FRONT = 0.014, 0.022
_STANDOFF = 0.045
_TRAVEL = 0.006


class Microwave(StrictModel):
    """Box with a ``door`` and a ``start`` button; size is width, depth and height."""

    family: Literal["microwave"]

    def assemble(self, size: FloatArray, rng: np.random.Generator) -> Assembly:
        """Assemble one variant.

        Args:
            size: (3,) width, depth and height [m].
            rng: Unused: all ovens of a size are equal.
        """
        width, depth, height = size
        half, split = width / 2, -width / 2 + 0.1
        looks = TextureMapping(
            {
                "case": (depth, height),
                "front": (width, height),
                "window": (width, height),
                "handle": (0.1, 0.02),
                "display": (0.08, 0.03),
                "keys": (0.02, 0.02),
                "button": (0.06, 0.03),
                "inside": (width, depth),
                "plate": (depth, depth),
            }
        )
        case = Solids(looks)
        case.box((0, half - _WALL, 0), (depth, half, height), "case")
        case.box((0, -half, 0), (depth, split, height), "case")
        case.box((depth - _WALL, split, 0), (depth, half - _WALL, height), "inside")
        case.box((0, split, 0), (depth - _WALL, half - _WALL, _WALL), "inside")
        case.box((0, split, height - _WALL), (depth - _WALL, half - _WALL, height), "case")
        middle = (split + half - _WALL) / 2
        case.rod((depth / 2, middle, _WALL), (depth / 2, middle, _WALL + 0.008), 0.42 * depth, "plate", sides=28)
        _panel(case, -half, split, height)
        room = np.array([(0.0, split, _WALL + 0.008), (depth - _WALL, half - _WALL, height - _WALL)])
        return Assembly(
            looks=looks,
            base=case,
            links=[_door(looks, split, half, height), _start(looks, (-half + split) / 2)],
            frames={"opening": frame((0, middle, height / 2), (-1, 0, 0))},
            cavities={"opening": room},
        )


def _panel(case: Solids, low: float, high: float, height: float) -> None:
    """Add the front beside the door, with display and keys."""
    case.box((-_FRONT, low + 0.001, 0.003), (0, high - 0.002, height - 0.003), "front")
    middle = (low + high) / 2
    case.box(
        (-_FRONT - 0.001, low + 0.016, height - 0.055), (-_FRONT, high - 0.016, height - 0.022), "display", touch=False
    )
    for row in range(3):
        for column in range(3):
            y, z = middle + (column - 1) * 0.021, height - 0.078 - row * 0.019
            case.box((-_FRONT - 0.0015, y - 0.008, z - 0.007), (-_FRONT, y + 0.008, z + 0.007), "keys", touch=False)


def _start(looks: TextureMapping, y: float) -> Link:
    solids = Solids(looks)
    solids.box((-_FRONT - 0.009, y - 0.026, 0.022), (-_FRONT + 0.002, y + 0.026, 0.052), "button", bevel=0.003)
    return Link(
        name="start",
        solids=solids,
        joint=slide((1, 0, 0), (-_FRONT, y, 0.037), limit=_TRAVEL, damping=3.0, friction=0.0, stiffness=500.0),
        pressings=[Pressing(position=np.array((-_FRONT - 0.009, y, 0.037)), normal=np.array((-1.0, 0, 0)))],
    )


def _door(looks: TextureMapping, low: float, high: float, height: float) -> Link:
    solids, middle = Solids(looks), height / 2
    solids.box((-_FRONT, low + 0.001, 0.003), (-0.001, high - 0.001, height - 0.003), "front")
    solids.box((-_FRONT - 0.0015, low + 0.055, 0.04), (-_FRONT, high - 0.03, height - 0.04), "window", touch=False)
    solids.box((-0.0015, low + 0.055, 0.04), (0, high - 0.03, height - 0.04), "window", touch=False)
    length = 0.55 * height
    handle = bar(
        solids,
        (-_FRONT, low + 0.022, middle - length / 2),
        (-_FRONT, low + 0.022, middle + length / 2),
        (1, 0, 0),
        standoff=_STANDOFF,
        radius=0.007,
        turns=(-1.1, 1.1),
    )
    return Link(
        name="door",
        solids=solids,
        joint=hinge((0, 0, -1), (0, high, middle), limit=np.radians(105), damping=0.15, friction=0.08),
        handles=[handle],
        pressings=[
            Pressing(position=np.array((-_FRONT - 0.0015, low + away, share * height)), normal=np.array((-1.0, 0, 0)))
            for share, away in ((0.65, 0.07), (0.8, 0.07), (0.5, 0.1))
        ],
    )
