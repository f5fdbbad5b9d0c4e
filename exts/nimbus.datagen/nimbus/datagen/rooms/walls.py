"""Walls of a room, from corner to corner, with openings for windows and doors."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.geometry.transforms import make_transform, quat_from_axis_angle

Side: TypeAlias = Literal["right", "front", "left", "back"]
"""Walls of a rectangular room as seen by the robot, which faces the front along x."""


@dataclass(frozen=True)
class Opening:
    """Rectangular opening in a wall, filled by a furnishing of its kind."""

    kind: str
    start: float
    """Start along the wall [m]."""
    end: float
    low: float
    """Height of the lower edge above the floor [m]."""
    high: float

    @property
    def middle(self) -> float:
        """Position of the center along the wall [m]."""
        return (self.start + self.end) / 2


@dataclass(frozen=True)
class Wall:
    """Wall from a start to an end point (x, y); the room is on its left."""

    start: tuple[float, float]
    end: tuple[float, float]
    floor: float
    """Height of the floor in the frame of the room [m]."""
    height: float
    openings: tuple[Opening, ...] = ()

    @property
    def length(self) -> float:
        """Length of the wall [m]."""
        return math.dist(self.start, self.end)

    def frame(self, along: float, *, out: float = 0.0, up: float = 0.0) -> FloatArray:
        """Return the pose (4, 4) of a point on the wall, with x along the wall and y into the room.

        Args:
            along: Distance from the start of the wall [m].
            out: Distance from the wall into the room [m].
            up: Height above the floor [m].
        """
        (x, y), (to_x, to_y) = self.start, self.end
        yaw = math.atan2(to_y - y, to_x - x)
        cos, sin = math.cos(yaw), math.sin(yaw)
        position = (x + along * cos - out * sin, y + along * sin + out * cos, self.floor + up)
        return make_transform(position, quat_from_axis_angle((0, 0, 1), yaw))

    def opened(self, opening: Opening) -> Wall:
        """Return the wall with an additional opening."""
        return replace(self, openings=(*self.openings, opening))

    def is_free(self, start: float, end: float, low: float, high: float) -> bool:
        """Return True if a rectangle [m] lies on the wall and overlaps no opening."""
        if start < 0 or end > self.length or high > self.height:
            return False
        return not any(o.start < end and start < o.end and o.low < high and low < o.high for o in self.openings)

    def panels(self) -> FloatArray:
        """Return quadrilaterals (n, 4, 3) [m] that cover the wall around its openings, as seen from the room."""
        cuts = sorted({0.0, self.length, *(value for o in self.openings for value in (o.start, o.end))})
        found = []
        for start, end in zip(cuts[:-1], cuts[1:], strict=True):
            low = 0.0
            for opening in sorted(self.openings, key=lambda one: one.low):
                if opening.start <= start and end <= opening.end:
                    found.append((start, end, low, opening.low))
                    low = opening.high
            found.append((start, end, low, self.height))
        return np.array([self._corners(*panel) for panel in found if panel[3] - panel[2] > 1e-6])

    def _corners(self, start: float, end: float, low: float, high: float) -> list[FloatArray]:
        places = ((end, low), (start, low), (start, high), (end, high))
        return [self.frame(along, up=up)[:3, 3] for along, up in places]

    def feet(self) -> list[tuple[float, float]]:
        """Return the sections (start, end) [m] of the wall that reach the floor."""
        doors = sorted((o.start, o.end) for o in self.openings if o.low <= 0)
        edges = [0.0, *(value for door in doors for value in door), self.length]
        return [(low, high) for low, high in zip(edges[::2], edges[1::2], strict=True) if high - low > 0.02]


def make_walls(x: tuple[float, float], y: tuple[float, float], *, floor: float, height: float) -> dict[Side, Wall]:
    """Make the four walls of a room from its ranges of x and y [m]."""
    corners = ((x[0], y[0]), (x[1], y[0]), (x[1], y[1]), (x[0], y[1]))
    sides: tuple[Side, ...] = ("right", "front", "left", "back")
    return {side: Wall(corners[place], corners[(place + 1) % 4], floor, height) for place, side in enumerate(sides)}
