"""Flights of stairs between two storeys of a home: a stairwell behind an outer wall, with a doorway on each storey."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nimbus.datagen.rooms.building_parts import WALL
from nimbus.datagen.rooms.home_plan import Rectangle
from nimbus.datagen.rooms.modeling import Modeler, Patch
from nimbus.datagen.rooms.walls import Opening, Side, Wall

STAIRWELL = "stairwell"
"""Kind of room of a stairwell."""
STAIRS = "stairs"
"""Semantic class of the steps."""
DOORWAY = (1.0, WALL, 2.06)
"""Width, depth and height of the doorways [m]."""
_WIDTH = 1.2
"""Distance between the walls of a flight [m]."""
_LANDING = 1.15
"""Length of level floor before the first step and after the last [m]."""
_RUN, _TALLEST = 0.28, 0.175
"""Depth and largest height of a step [m], as in German dwellings (DIN 18065)."""
_MARGIN = 0.72
"""Smallest distance from the center of a doorway to a corner of the adjacent room [m]."""
_LONGEST = 2.5
"""Largest extension of the upper landing [m]; it lets the doorways lead into rooms instead of onto walls."""


@dataclass(frozen=True)
class Flight:
    """Straight flight of stairs."""

    side: Side
    """Side of the home behind whose outer wall the flight is: ``front`` or ``left``."""
    rectangle: Rectangle
    rooms: tuple[int, int]
    """Indices of the lower and upper room in the plans of their storeys."""
    doors: tuple[float, float]
    """Positions of the centers of the lower and upper doorway, along y (front) or x (left) [m]."""
    low: float
    """Height of the lower floor [m]."""
    high: float
    """Height of the upper floor [m]."""

    @property
    def steps(self) -> int:
        """Number of steps, including the last one onto the upper floor."""
        return _step_count(self.high - self.low)

    @property
    def ground(self) -> Rectangle:
        """Floor area before the first step."""
        start = self.span[0]
        own = (start, start + _LANDING)
        return Rectangle(self.rectangle.x, own) if self.side == "front" else Rectangle(own, self.rectangle.y)

    @property
    def span(self) -> tuple[float, float]:
        """Range of the outer wall that the flight covers, along y (front) or x (left) [m]."""
        return self.rectangle.y if self.side == "front" else self.rectangle.x


def _step_count(rise: float) -> int:
    return int(np.ceil(rise / _TALLEST))


def find_flight(cut: Sequence[Rectangle], side: Side, *, low: float, high: float) -> Flight | None:
    """Find a position for a flight behind an outer wall; None if no two rooms have space for its doorways.

    Args:
        cut: Rooms of each of the two storeys, which have equal walls.
        side: ``front`` or ``left``.
        low: Height of the lower floor [m].
        high: Height of the upper floor [m].
    """
    across = 0 if side == "front" else 1
    edge = max((room.x, room.y)[across][1] for room in cut)
    outer = [place for place, room in enumerate(cut) if (room.x, room.y)[across][1] == edge]
    spans = {place: (cut[place].x, cut[place].y)[1 - across] for place in outer}
    length = 2 * _LANDING + (_step_count(high - low) - 1) * _RUN
    for extra in np.arange(0.0, _LONGEST, 0.1):
        for below in outer:
            for start in np.arange(spans[below][0], spans[below][1], 0.1):
                lower = float(start + _LANDING / 2)
                upper = float(start + length + extra - _LANDING / 2)
                above = next((place for place in outer if _fits(spans[place], upper)), None)
                if above is None or not _fits(spans[below], lower):
                    continue
                along, beside = (float(start), float(start + length + extra)), (edge + WALL, edge + WALL + _WIDTH)
                rectangle = Rectangle(beside, along) if side == "front" else Rectangle(along, beside)
                return Flight(side, rectangle, (below, above), (lower, upper), low, high)
    return None


def _fits(span: tuple[float, float], place: float) -> bool:
    return span[0] + _MARGIN <= place <= span[1] - _MARGIN


def opened_wall(wall: Wall, flight: Flight) -> Wall:
    """Cut both doorways into the wall between the stairwell and the rooms."""
    for place, up in zip(flight.doors, (0.0, flight.high - flight.low), strict=True):
        along = flight.rectangle.y[1] - place if flight.side == "front" else place - flight.rectangle.x[0]
        width, _, height = DOORWAY
        wall = wall.opened(Opening("doorway", along - width / 2, along + width / 2, up, up + height))
    return wall


def stair_patches(flight: Flight) -> tuple[Patch, ...]:
    """Build the steps and the upper landing as solids that reach down to the lower floor."""
    modeler, count = Modeler(), flight.steps
    rise = (flight.high - flight.low) / count
    (x0, x1), (y0, y1) = flight.rectangle.x, flight.rectangle.y
    start, end = flight.span
    for step in range(count):
        first = start + _LANDING + step * _RUN
        last = end if step == count - 1 else first + _RUN
        top = flight.low + (step + 1) * rise
        low, high = ((x0, first), (x1, last)) if flight.side == "front" else ((first, y0), (last, y1))
        modeler.box((*low, flight.low), (*high, top), "wood", omit=("bottom",))
    return tuple(modeler.patches)
