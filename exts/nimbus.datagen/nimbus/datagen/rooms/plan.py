"""Plan of one room: furnishings along walls, on the floor and on furniture, where there is room."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.geometry.transforms import make_transform, quat_from_axis_angle
from nimbus.datagen.rooms.furnishing import Furnishing, FurnishingKind, Size
from nimbus.datagen.rooms.modeling import Modeler, Patch, placed
from nimbus.datagen.rooms.walls import Opening, Side, Wall, make_walls

"""Kinds of furnishings by name."""
_TOUCH = 1e-4
"""Overlap below which two furnishings only touch [m]."""
_TRIES = 12
"""Number of positions tried for an object on the floor or on furniture."""
_EYE = 0.75
"""Largest distance of cameras and elbows beyond the left and right sides of the bench [m]."""
_AHEAD, _BEHIND = 0.95, 0.55
"""Largest distance of cameras to the front, and of the robot to the back of the bench [m]."""
_HUNG = {"radiator": 0.0, "socket": 0.3, "curtain": 0.2, "fire_extinguisher": 0.6}
"""Heights above the floor of objects on walls that are not at eye level [m]."""
_LOW, _HIGH = -0.1, 1.45
"""Range of heights, relative to the work surface, in which the robot moves and cameras look [m]."""


@dataclass(frozen=True)
class Bench:
    """Work surface around which a room is built; heights are relative to its top."""

    lower: tuple[float, float]
    """Lower corner (x, y) of the bench [m]."""
    upper: tuple[float, float]
    floor: float
    """Height of the floor [m], below 0."""

    @property
    def workspace(self) -> FloatArray:
        """Lower and upper corner (2, 3) of the space that stays free of furnishings [m]."""
        low = (self.lower[0] - _BEHIND, self.lower[1] - _EYE, _LOW)
        return np.array([low, (self.upper[0] + _AHEAD, self.upper[1] + _EYE, _HIGH)])

    @property
    def body(self) -> FloatArray:
        """Lower and upper corner (2, 3) of the bench, down to the floor [m]."""
        return np.array([(*self.lower, self.floor), (*self.upper, 0.0)])


class RoomPlan:
    """Rectangular room during furnishing.

    Args:
        floor: Height of the floor [m].
        kinds: Furniture by name.
        rng: Random stream of the room.
        x: Positions of the back and the front wall [m].
        y: Positions of the right and the left wall [m].
        height: Height of the room [m].
        clutter: Fraction of the free positions that small objects fill.
        sight: Lowest height of objects that hang from the ceiling [m].
    """

    def __init__(
        self,
        floor: float,
        kinds: Mapping[str, FurnishingKind],
        rng: np.random.Generator,
        *,
        x: tuple[float, float],
        y: tuple[float, float],
        height: float,
        clutter: float,
        sight: float = _HIGH,
    ) -> None:
        self.floor, self.kinds, self.rng, self.x, self.y = floor, kinds, rng, x, y
        self.height, self.clutter, self._sight = height, clutter, sight
        self.walls = make_walls(x, y, floor=floor, height=height)
        self.furnishings: list[Furnishing] = []
        self._taken: list[FloatArray] = []

    def open(self, side: Side, kind: str, along: float, *, low: float = 0.0, size: Size | None = None) -> bool:
        """Cut a window or a door into a wall, fill it, and keep the area in front of a door free.

        Returns False, and changes nothing, if the wall is not free there.

        Args:
            side: Wall to cut.
            kind: ``window``, ``door``, ``roller_door``, …
            along: Center along the wall [m].
            low: Height of the opening's lower edge above the floor [m].
            size: Size; drawn by default.
        """
        wall, (width, depth, height) = self.walls[side], size or self.kinds[kind].draw_size(self.rng)
        opening = Opening(kind, along - width / 2, along + width / 2, low, low + height)
        if not wall.is_free(opening.start - 0.1, opening.end + 0.1, low, opening.high + 0.05):
            return False
        self.walls[side] = wall = wall.opened(opening)
        self._add(kind, wall.frame(along, up=low), (width, depth, height))
        if low <= 0:
            self._keep_free(wall, opening)
        return True

    def cut(self, side: Side, along: float, *, width: float, height: float) -> None:
        """Cut a doorway to a neighboring room, and keep the area in front of it free.

        Args:
            side: Wall to cut.
            along: Center of the doorway along the wall [m].
            width: Width of the opening [m].
            height: Height of the opening [m].
        """
        opening = Opening("doorway", along - width / 2, along + width / 2, 0.0, height)
        self.walls[side] = wall = self.walls[side].opened(opening)
        self._keep_free(wall, opening)

    def _keep_free(self, wall: Wall, opening: Opening) -> None:
        """Keep furnishings out of the area in front of a door."""
        corners = [wall.frame(place, out=out)[:2, 3] for place in (opening.start, opening.end) for out in (0.0, 0.9)]
        flat = np.array([np.min(corners, axis=0), np.max(corners, axis=0)])
        self._taken.append(np.column_stack([flat, (self.floor, self.floor + 2.0)]))

    def against(
        self, side: Side, kind: str, along: float, *, up: float = 0.0, size: Size | None = None, gap: float = 0.0
    ) -> Furnishing | None:
        """Place a furnishing with its back to a wall; return None if there is no room for it.

        Args:
            side: Wall behind the furnishing.
            kind: Kind of furnishing.
            along: Center along the wall [m].
            up: Height of the furnishing's underside above the floor [m].
            size: Size; drawn by default.
            gap: Distance from the wall [m].
        """
        wall, size = self.walls[side], size or self.kinds[kind].draw_size(self.rng)
        if not wall.is_free(along - size[0] / 2, along + size[0] / 2, up + 0.02, min(up + size[2], wall.height)):
            return None
        return self._fit(kind, wall.frame(along, out=size[1] / 2 + gap + 0.001, up=up), size)

    def row(self, side: Side, kinds: Sequence[str], start: float, end: float, *, up: float = 0.0) -> list[Furnishing]:
        """Place as many furnishings as fit side by side along a wall.

        Args:
            side: Wall behind the row.
            kinds: Kinds of furnishings, in this order.
            start: Start of the row along the wall [m].
            end: End of the row [m].
            up: Height of the undersides above the floor [m].
        """
        found = []
        for kind in kinds:
            size = self.kinds[kind].draw_size(self.rng)
            if start + size[0] > end:
                continue
            made = self.against(side, kind, start + size[0] / 2, up=up, size=size)
            start += size[0] if made else 0.3
            found += [made] if made else []
        return found

    def stand(
        self, kind: str, x: tuple[float, float], y: tuple[float, float], *, yaw: float | None = None
    ) -> Furnishing | None:
        """Place a furnishing at a drawn position in an area of the floor [m], with a given or drawn yaw [rad]."""
        model = self._model(kind, self.kinds[kind].draw_size(self.rng))
        for _ in range(_TRIES):
            turn = float(self.rng.uniform(-np.pi, np.pi)) if yaw is None else yaw
            place = (float(self.rng.uniform(*x)), float(self.rng.uniform(*y)), self.floor)
            made = self._placed(kind, model, make_transform(place, quat_from_axis_angle((0, 0, 1), turn)))
            if self._is_free(made.bounds) and self._is_inside(made.bounds):
                return self._keep(made)
        return None

    def put(
        self, kind: str, place: tuple[float, float], *, up: float = 0.0, yaw: float = 0.0, size: Size | None = None
    ) -> Furnishing | None:
        """Place a furnishing at x, y [m]; return None if there is no room for it."""
        turn = quat_from_axis_angle((0, 0, 1), yaw)
        return self._fit(
            kind, make_transform((*place, self.floor + up), turn), size or self.kinds[kind].draw_size(self.rng)
        )

    def lay(self, kind: str, place: tuple[float, float], *, yaw: float = 0.0) -> None:
        """Lay a flat object on the floor; other objects may stand on it."""
        pose = make_transform((*place, self.floor), quat_from_axis_angle((0, 0, 1), yaw))
        self._add(kind, pose, self.kinds[kind].draw_size(self.rng), blocks=False)

    def hang(self, kind: str, place: tuple[float, float], *, size: Size | None = None) -> None:
        """Hang an object from the ceiling, unless it would reach into the cameras' field of view."""
        size = size or self.kinds[kind].draw_size(self.rng)
        pose = make_transform((*place, self.floor + self.height - 0.002), (1, 0, 0, 0))
        made = self._make(kind, pose, size)
        if made.bounds[0, 2] > self._sight:
            self.furnishings.append(made)

    def clutter_on(
        self, furnishing: Furnishing, kinds: Sequence[str], *, up: float | None = None, share: float = 1.0
    ) -> None:
        """Place small objects on a furnishing, side by side in drawn order.

        Args:
            furnishing: Furnishing that supports the clutter.
            kinds: Kinds to draw from.
            up: Height of the support above the floor [m]; by default the furnishing's top.
            share: Factor on the plan's clutter.
        """
        low, high = furnishing.bounds
        z = high[2] if up is None else self.floor + up
        long = 0 if high[0] - low[0] >= high[1] - low[1] else 1
        middle = (low + high) / 2
        yaw = self._facing(furnishing)
        at = float(low[long])
        while at < high[long]:
            kind = kinds[int(self.rng.integers(len(kinds)))]
            size = self.kinds[kind].draw_size(self.rng)
            step = size[0] + 0.04
            if at + step > high[long]:
                break
            place = middle.copy()
            place[long] = at + step / 2
            deep = high[1 - long] - low[1 - long]
            place[1 - long] += float(self.rng.uniform(-0.5, 0.5)) * max(deep - size[1] - 0.06, 0.0)
            if self.rng.uniform() < self.clutter * share and size[1] < deep:
                turn = yaw + float(self.rng.uniform(-0.3, 0.3))
                pose = make_transform((place[0], place[1], z + 0.001), quat_from_axis_angle((0, 0, 1), turn))
                made = self._make(kind, pose, size)
                if self._is_free(made.bounds, but=furnishing.bounds if up is not None else None):
                    self._keep(made)
            at += step + float(self.rng.exponential(0.12))

    def set_down(self, kind: str, place: tuple[float, float], furnishing: Furnishing) -> Furnishing | None:
        """Place an object on top of a furnishing at x, y [m], facing the room; return None if the spot is occupied."""
        turn = quat_from_axis_angle((0, 0, 1), self._facing(furnishing))
        pose = make_transform((*place, float(furnishing.bounds[1, 2]) + 0.001), turn)
        return self._fit(kind, pose, self.kinds[kind].draw_size(self.rng))

    def along(self, side: Side, furnishing: Furnishing) -> float:
        """Return the position of a furnishing's center along a wall, from the start of the wall [m]."""
        x, y = furnishing.bounds.mean(axis=0)[:2]
        places = {"right": x - self.x[0], "front": y - self.y[0], "left": self.x[1] - x, "back": self.y[1] - y}
        return float(places[side])

    def _facing(self, furnishing: Furnishing) -> float:
        """Return the yaw [rad] at which a furnishing faces the room, away from the nearest wall."""
        x, y = furnishing.bounds.mean(axis=0)[:2]
        ways = {np.pi: self.y[1] - y, 0.0: y - self.y[0], -np.pi / 2: x - self.x[0], np.pi / 2: self.x[1] - x}
        return min(ways, key=lambda yaw: ways[yaw])

    def close(self, wall_kinds: Sequence[str] = ()) -> None:
        """Add skirting and the ceiling, and hang an object of each kind where a drawn position on a wall is free."""
        for kind in wall_kinds:
            side = ("back", "left", "right")[int(self.rng.integers(3))]
            size, up = self.kinds[kind].draw_size(self.rng), _HUNG.get(kind, float(self.rng.uniform(1.2, 1.5)))
            along = float(self.rng.uniform(0.4, max(0.41, self.walls[side].length - 0.4)))
            self.against(side, kind, along, up=up, size=size)
        _, depth, height = self.kinds["skirting"].low
        for wall in self.walls.values():
            for start, end in wall.feet():
                pose = wall.frame((start + end) / 2, out=depth / 2)
                self._add("skirting", pose, (end - start, depth, height), blocks=False)
        x, y = sum(self.x) / 2, sum(self.y) / 2
        pose = make_transform((x, y, self.floor + self.height), (1, 0, 0, 0))
        self._add("ceiling", pose, (float(np.ptp(self.x)), float(np.ptp(self.y)), 0.0), blocks=False)

    def wall_of(self, side: Side) -> Wall:
        """Return a wall with the openings that are cut so far."""
        return self.walls[side]

    def _fit(self, kind: str, pose: FloatArray, size: Size) -> Furnishing | None:
        made = self._make(kind, pose, size)
        if not self._is_free(made.bounds) or not self._is_inside(made.bounds):
            return None
        return self._keep(made)

    def _add(self, kind: str, pose: FloatArray, size: Size, *, blocks: bool = True) -> Furnishing:
        """Add a furnishing without checking for room."""
        made = self._make(kind, pose, size)
        if blocks:
            return self._keep(made)
        self.furnishings.append(made)
        return made

    def _make(self, kind: str, pose: FloatArray, size: Size) -> Furnishing:
        return self._placed(kind, self._model(kind, size), pose)

    def _model(self, kind: str, size: Size) -> list[Patch]:
        """Build a furnishing in its own frame."""
        modeler = Modeler()
        self.kinds[kind].build(modeler, size, self.rng)
        return modeler.patches

    def _placed(self, kind: str, model: list[Patch], pose: FloatArray) -> Furnishing:
        count = sum(one.kind == kind for one in self.furnishings)
        return Furnishing(
            f"{kind}_{count}", kind, tuple(placed(model, pose)), casts_shadow=not self.kinds[kind].is_flat
        )

    def _keep(self, made: Furnishing) -> Furnishing:
        self.furnishings.append(made)
        self._taken.append(made.bounds)
        return made

    def _is_free(self, box: FloatArray, but: FloatArray | None = None) -> bool:
        low, high = box[0] + _TOUCH, box[1] - _TOUCH
        return not any(np.all(low < other[1]) and np.all(other[0] < high) for other in self._taken if other is not but)

    def _is_inside(self, box: FloatArray) -> bool:
        low, high = box
        inside = self.x[0] - 0.2 < low[0] and high[0] < self.x[1] + 0.2
        return inside and self.y[0] - 0.2 < low[1] and high[1] < self.y[1] + 0.2


class Plan(RoomPlan):
    """Room around a bench during furnishing.

    Args:
        bench: Bench around which the room is built.
        kinds: Furniture by name.
        rng: Random stream of the room.
        x: Positions of the back and the front wall [m].
        y: Positions of the right and the left wall [m].
        height: Height of the room [m].
        clutter: Fraction of the free positions that small objects fill.
    """

    def __init__(
        self,
        bench: Bench,
        kinds: Mapping[str, FurnishingKind],
        rng: np.random.Generator,
        *,
        x: tuple[float, float],
        y: tuple[float, float],
        height: float,
        clutter: float,
    ) -> None:
        super().__init__(bench.floor, kinds, rng, x=x, y=y, height=height, clutter=clutter)
        self.bench = bench
        self._taken += [bench.workspace, bench.body]

    def below_bench(self, kind: str) -> None:
        """Fill the space below the bench's top with a base of a kind."""
        low, high = self.bench.body
        x, y = (low + high)[:2] / 2
        size = (float(high[1] - low[1]), float(high[0] - low[0]), -self.floor - 0.01)
        turn = quat_from_axis_angle((0, 0, 1), -np.pi / 2)
        self._add(kind, make_transform((x, y, self.floor), turn), size, blocks=False)
