"""Generated room: furnishings, walls and floor around a bench, and the look."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.random_streams import generator
from nimbus.datagen.rooms.families import FURNISH
from nimbus.datagen.rooms.furnishing import Furnishing
from nimbus.datagen.rooms.kinds import KINDS
from nimbus.datagen.rooms.look import RoomLook, draw_look
from nimbus.datagen.rooms.plan import Bench, Plan
from nimbus.datagen.rooms.settings import RoomSettings

ROOM_VERSION = 4
"""Version of the generator; raise it when any room changes."""
_BEHIND = (1.42, 1.9)
"""Range of the distance from the bench to the wall behind it [m], for the deepest furniture and space for elbows."""
_DEPTHS, _WIDTHS = (4.6, 5.8), (4.6, 6.4)
"""Ranges of the depth and width of rooms [m]."""
_SPARE = 0.3
"""Distance from the workspace to a wall without furniture [m]."""


@dataclass(frozen=True)
class Room:
    """Geometry and look of a static room."""

    settings: RoomSettings
    furnishings: tuple[Furnishing, ...]
    walls: FloatArray
    """(n, 4, 3) quadrilaterals of the walls, counter-clockwise from inside [m]."""
    floor: FloatArray
    """(4, 3) corners of the floor [m]."""
    look: RoomLook
    workspace: FloatArray
    """Lower and upper corner (2, 3) of the space without furnishings [m]."""

    @property
    def triangle_count(self) -> int:
        """Return the number of triangles of furnishings, walls and floor."""
        return sum(one.triangle_count for one in self.furnishings) + 2 * len(self.walls) + 2


def least_size(bench: Bench) -> tuple[float, float]:
    """Return depth and width of the smallest room around a bench [m]."""
    low, high = bench.workspace
    depth = float(high[0]) - bench.lower[0] + _BEHIND[0] + _SPARE
    return depth, float(high[1] - low[1]) + 2 * _SPARE


def make_room(settings: RoomSettings, bench: Bench) -> Room:
    """Generate the room with given settings around a bench; equal settings and benches give equal rooms."""
    rng = generator(settings.seed, "room", settings.family)
    drawn = rng.uniform([_DEPTHS[0], _WIDTHS[0]], [_DEPTHS[1], _WIDTHS[1]])
    depth, width = (float(value) for value in (drawn if settings.size is None else settings.size))
    depth, width = max(depth, least_size(bench)[0]), max(width, least_size(bench)[1])
    back = bench.lower[0] - float(rng.uniform(_BEHIND[0], min(_BEHIND[1], depth - least_size(bench)[0] + _BEHIND[0])))
    aside, clutter = float(rng.uniform(-0.2, 0.2)), float(rng.uniform(0.4, 0.9))
    middle = (bench.lower[1] + bench.upper[1]) / 2 + aside
    plan = Plan(
        bench,
        KINDS,
        rng,
        x=(back, back + depth),
        y=(middle - width / 2, middle + width / 2),
        height=float(rng.uniform(2.45, 2.9)),
        clutter=clutter if settings.clutter is None else settings.clutter,
    )
    FURNISH[settings.family](plan)
    (x0, x1), (y0, y1), z = plan.x, plan.y, bench.floor
    return Room(
        settings=settings,
        furnishings=tuple(plan.furnishings),
        walls=np.concatenate([wall.panels() for wall in plan.walls.values()]),
        floor=np.array([(x0, y0, z), (x1, y0, z), (x1, y1, z), (x0, y1, z)]),
        look=draw_look(settings.family, settings.look_seed),
        workspace=bench.workspace,
    )
