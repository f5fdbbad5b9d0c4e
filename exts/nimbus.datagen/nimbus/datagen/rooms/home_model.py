"""Complete generated home: rooms with their contents, and the doors between them."""

from __future__ import annotations

from dataclasses import dataclass

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.rooms.furnishing import Furnishing
from nimbus.datagen.rooms.home_plan import Rectangle
from nimbus.datagen.rooms.look import RoomLook


@dataclass(frozen=True)
class HomeRoom:
    """One room of a home."""

    name: str
    kind: str
    rectangle: Rectangle
    floor: float
    """Height of the floor above the lowest one [m]."""
    height: float
    """Height of the room [m]."""
    furnishings: tuple[Furnishing, ...]
    walls: FloatArray
    """(n, 4, 3) quadrilaterals, counter-clockwise from inside [m]."""
    lamps: tuple[tuple[float, float, float], ...]
    """Points just below the lamps [m]."""
    look: RoomLook
    ground: Rectangle | None = None
    """Part of the rectangle that has a floor; None for all of it."""


@dataclass(frozen=True)
class HomeDoor:
    """Open doorway between two rooms."""

    name: str
    rooms: tuple[str, str]
    position: tuple[float, float, float]
    """Middle of the doorway on the floor [m]."""
    width: float
    """Width between the jambs [m]."""


@dataclass(frozen=True)
class HomePlan:
    """Rooms and doors of a generated home."""

    seed: int
    rooms: tuple[HomeRoom, ...]
    doors: tuple[HomeDoor, ...]
