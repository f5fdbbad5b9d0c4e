"""Plan of a storey: a rectangle cut into rooms, the kinds of the rooms, and the doors between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nimbus.datagen.rooms.building_parts import WALL
from nimbus.datagen.rooms.home_rooms import HOME_ROOMS
from nimbus.datagen.rooms.walls import Side

_LEAST_SIDE = 1.9
"""Smallest side of a room [m]."""
_AREA_OF_ROOM = (12.0, 17.0)
"""Range of the mean area of the rooms [m²]."""
_OVERLAP = 1.35
"""Smallest length of a shared wall that can have a door [m]."""
_LOOPS = 0.3
"""Fraction of the additional pairs of neighbors that get a door."""
_LEAVES = ("bathroom", "storage_room", "laundry_room")
"""Kinds that are avoided as passages to other rooms."""


@dataclass(frozen=True)
class Rectangle:
    """Floor of one room between the inner faces of its walls."""

    x: tuple[float, float]
    """Extent along x [m]."""
    y: tuple[float, float]

    @property
    def area(self) -> float:
        """Area [m²]."""
        return (self.x[1] - self.x[0]) * (self.y[1] - self.y[0])

    def cut(self, axis: int, place: float) -> tuple[Rectangle, Rectangle]:
        """Cut the rectangle in two, with a wall between, at a position along x (0) or y (1) [m]."""
        low, high = place - WALL / 2, place + WALL / 2
        if axis == 0:
            return Rectangle((self.x[0], low), self.y), Rectangle((high, self.x[1]), self.y)
        return Rectangle(self.x, (self.y[0], low)), Rectangle(self.x, (high, self.y[1]))


@dataclass(frozen=True)
class SharedWall:
    """Stretch of wall between a first and a second room."""

    rooms: tuple[int, int]
    axis: int
    """0 if the rooms are side by side along x, 1 along y."""
    low: float
    """Start of the stretch along the other axis [m]."""
    high: float

    @property
    def sides(self) -> tuple[Side, Side]:
        """Walls of the first and the second room."""
        return ("front", "back") if self.axis == 0 else ("left", "right")


def cut_rooms(rng: np.random.Generator, count: int) -> list[Rectangle]:
    """Cut a rectangle of a drawn size into up to ``count`` rooms, sorted from the largest."""
    area = count * float(rng.uniform(*_AREA_OF_ROOM))
    ratio = float(rng.uniform(0.8, 1.4))
    width = max(np.sqrt(area * ratio), 3.6)
    rooms = [Rectangle((0.0, float(width)), (0.0, float(max(area / width, 3.0))))]
    while len(rooms) < count:
        rooms.sort(key=lambda room: -room.area)
        for place, room in enumerate(rooms):
            sizes = np.ptp(room.x), np.ptp(room.y)
            axis = int(sizes[1] > sizes[0])
            share = float(rng.uniform(0.36, 0.64))
            if min(share, 1 - share) * sizes[axis] - WALL / 2 >= _LEAST_SIDE:
                rooms[place : place + 1] = room.cut(axis, (room.x, room.y)[axis][0] + share * float(sizes[axis]))
                break
        else:
            break
    return sorted(rooms, key=lambda room: -room.area)


def shared_walls(rooms: Sequence[Rectangle]) -> list[SharedWall]:
    """Find the shared walls of rooms that are long enough for a door."""
    found = []
    for one, a in enumerate(rooms):
        for other, b in enumerate(rooms):
            for axis in (0, 1):
                first, second = ((a.x, b.x), (a.y, b.y))[axis]
                spans = ((a.y, b.y), (a.x, b.x))[axis]
                low, high = max(spans[0][0], spans[1][0]), min(spans[0][1], spans[1][1])
                if abs(second[0] - first[1] - WALL) < 1e-6 and high - low >= _OVERLAP:
                    found.append(SharedWall((one, other), axis, low, high))
    return found


def assign_kinds(rng: np.random.Generator, rooms: Sequence[Rectangle], *, is_upper: bool = False) -> list[str]:
    """Draw the kinds of rooms, first the usual ones of a storey; each gets the free room of the best size.

    Args:
        rng: Random stream.
        rooms: Rectangles of the rooms.
        is_upper: True for storeys above the lowest one, which have no kitchen.
    """
    names = list(HOME_ROOMS)
    if is_upper:
        names = ["bedroom", "bathroom", "bedroom", "study", *(name for name in names[4:] if name != "study")]
    further = [*names[4:], "bedroom", "bathroom", "bedroom"]
    drawn = [further[int(place)] for place in rng.permutation(len(further))]
    extra = max(len(rooms) - 4 - len(drawn), 0)
    drawn += [further[int(place)] for place in rng.integers(len(further), size=extra)]
    wanted = [*names[:4], *drawn][: len(rooms)]
    found = [""] * len(rooms)
    for kind in sorted(wanted, key=lambda name: -HOME_ROOMS[name].area[0]):
        low, high = HOME_ROOMS[kind].area
        free = [place for place, name in enumerate(found) if not name]
        misfit = {place: max(low - rooms[place].area, rooms[place].area - high, 0.0) for place in free}
        found[min(free, key=lambda place: (misfit[place], place))] = kind
    return found


def choose_doors(rng: np.random.Generator, walls: Sequence[SharedWall], kinds: Sequence[str]) -> list[SharedWall]:
    """Choose walls that get doors: a tree that connects all rooms, and some more for alternative routes."""
    weights = rng.uniform(size=len(walls))
    weights += [sum(kinds[room] in _LEAVES for room in wall.rooms) for wall in walls]
    group = list(range(len(kinds)))
    chosen = []
    for place in np.argsort(weights, kind="stable"):
        wall = walls[place]
        one, other = (group[room] for room in wall.rooms)
        is_leaf = any(kinds[room] in _LEAVES for room in wall.rooms)
        if one != other:
            group = [one if entry == other else entry for entry in group]
            chosen.append(wall)
        elif not is_leaf and rng.uniform() < _LOOPS:
            chosen.append(wall)
    return chosen
