"""Packing: positions for the things of a task on a work surface, within reach and without overlap.

Large things are placed first. The area that a door or a drawer sweeps stays free, and so does the goal position of a
thing that is put beside another one or onto the table. Every try draws other positions. From the third try on, large
things are aligned with the table, and every second try prefers positions close to other things. The last tries align
long things as well.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from nimbus.datagen.arrays import BoolArray, FloatArray
from nimbus.datagen.errors import InputError
from nimbus.datagen.propose.catalogue import KindEntry
from nimbus.datagen.propose.goal_graph import GoalGraph, Thing
from nimbus.datagen.propose.planner import goal_region, start_region
from nimbus.datagen.propose.work_area import PITCH, WorkArea
from nimbus.datagen.randomize.placement import rectangle
from nimbus.datagen.tasks.task_file import Region
from nimbus.datagen.usd.stage import StageInfo

_JITTER = 0.03
"""Extent of a region around its center [m]: layouts shift an object within it, in addition to its rotation."""
_CLEARANCE = 0.018
"""Clearance around each thing [m]; layouts keep 3 cm between two objects."""
_GAP = 0.03
"""Gap between a thing and the one put beside it, the default of the skill [m]."""
_FRONT = 0.42
"""Distance from the robot within which no door or drawer may open toward it [m]."""
_FURNITURE = (0.5, 0.68)
"""Range of distances of furniture from the robot [m]; furniture that opens far toward the robot is farther away."""
_FURNITURE_YAW = 0.09
"""Largest rotation of furniture [rad]."""
_TRIES = (0.0, 0.0, 0.11, 0.11, 0.11, 0.11, 0.06, 0.06, 0.06, 0.06)
"""Radius above which things are aligned with the table, for each try [m]; 0 aligns none."""
_LONG = 1.5
"""Ratio of the sides above which a thing is long."""
TURN = 0.17
"""Largest rotation of a thing that is aligned with the table [rad]."""
_SIDES = {"left_of": (0, 1), "right_of": (0, -1), "in_front_of": (-1, 0), "behind": (1, 0)}
"""Direction (x, y) of each side in the frame of the robot, which looks along x."""


@dataclass(frozen=True)
class PackedPlaces:
    """Positions of a task's things on the work surface."""

    regions: dict[str, Region]
    """Regions by name; the names are those of :func:`start_region` and :func:`goal_region`."""
    yaws: dict[str, float]
    """Headings [rad] of things aligned with the table, by name; all other things may have any heading."""


@dataclass
class _Packing:
    area: WorkArea
    rng: np.random.Generator
    taken: list[FloatArray]
    """Occupied outlines (n, 2) in the world [m]."""
    is_tight: bool
    """True to prefer positions close to other things."""
    regions: dict[str, Region] = field(default_factory=dict)

    def put(self, name: str, outline: FloatArray, points: FloatArray, *, also: Sequence[FloatArray] = ()) -> bool:
        """Find and occupy a position for an outline (n, 2) around its origin [m].

        ``also`` are outlines (n, 2) that must be free at the same position, such as goals beside the thing.

        Returns:
            False if there is no free position.
        """
        shapes = (outline, *also)
        room = np.full(len(points), np.inf)
        for one in shapes:
            for other in self.taken:
                room = np.minimum(room, _gaps(one, other, points))
        for one in also:
            room[~self._has_middle(one, points)] = -1.0
        free = np.flatnonzero(room > 0.0)
        if not len(free):
            return False
        if self.is_tight:
            free = free[np.argsort(room[free], kind="stable")][: max(1, len(free) // 8)]
        point = points[free[int(self.rng.integers(len(free)))]]
        self.taken += [shape + point for shape in shapes]
        x, y = (round(float(value), 3) for value in point)
        self.regions[name] = Region(on=self.area.surface, center=(x, y), size=(_JITTER, _JITTER))
        return True

    def _has_middle(self, outline: FloatArray, points: FloatArray) -> BoolArray:
        """Return (n,) flags, True for points at which the center of an outline may lie within the area."""
        middles = points + outline.mean(axis=0)
        return np.linalg.norm(self.area.points[None] - middles[:, None], axis=2).min(axis=1) < PITCH


def _gaps(one: FloatArray, other: FloatArray, points: FloatArray) -> FloatArray:
    """Return lower bounds (k,) of the distances [m] between a convex outline at some points and another outline.

    Args:
        one: (n, 2) outline relative to its origin, counter-clockwise [m].
        other: (m, 2) outline, counter-clockwise [m].
        points: (k, 2) positions of the first outline's origin [m].
    """
    # Separating axes: the largest gap along the normals of either outline is a lower bound of the distance.
    normals = np.concatenate([_normals(one), -_normals(other)])
    beyond = (other @ normals.T).min(axis=0) - (one @ normals.T).max(axis=0)
    return (beyond - points @ normals.T).max(axis=1)


def _normals(outline: FloatArray) -> FloatArray:
    edges = np.roll(outline, -1, axis=0) - outline
    normals = np.stack([edges[:, 1], -edges[:, 0]], axis=1)
    return normals / np.linalg.norm(normals, axis=1, keepdims=True)


def pack(
    graph: GoalGraph,
    catalogue: Mapping[str, KindEntry],
    area: WorkArea,
    stage: StageInfo,
    *,
    rng: np.random.Generator,
) -> PackedPlaces:
    """Find positions for all things that start on the surface, and for goals on the surface.

    Args:
        graph: Goal graph of the task.
        catalogue: Catalogue entries of its kinds.
        area: Work area of the robot on the surface.
        stage: Scene whose fixtures are obstacles.
        rng: Random stream for the choice among free positions.

    Raises:
        InputError: A thing has no free position.
    """
    fixtures = [rectangle(*fixture.world_bounds) for fixture in stage.fixtures.values()]
    missing = ""
    for number, along in enumerate(_TRIES):
        packing = _Packing(area, rng, list(fixtures), is_tight=along > 0.0 and number % 2 == 1)
        yaws = _yaws(graph, catalogue, area, along, rng) if along else {}
        missing = _pack_once(packing, graph, catalogue, yaws)
        if not missing:
            return PackedPlaces(packing.regions, yaws)
    what = f"there is no free position within reach for '{missing}'"
    raise InputError(what, where="things", instead="give fewer or smaller things")


def _yaws(
    graph: GoalGraph, catalogue: Mapping[str, KindEntry], area: WorkArea, along: float, rng: np.random.Generator
) -> dict[str, float]:
    """Draw a heading [rad] for each large or long thing: one of the four directions of the table."""
    ahead = math.atan2(area.world_R_robot[1, 0], area.world_R_robot[0, 0])
    yaws = {}
    for one in graph.things:
        kind = catalogue[one.kind]
        if one.inside or kind.parts or kind.is_anchored or one.count > 1 or kind.span <= along:
            continue
        if kind.size[0] >= _LONG * kind.size[1] or kind.span > _TRIES[2]:
            turn = ahead + math.pi / 2 * int(rng.integers(4))
            yaws[one.name] = round(math.remainder(turn, 2 * math.pi), 2)
    return yaws


def _pack_once(
    packing: _Packing, graph: GoalGraph, catalogue: Mapping[str, KindEntry], yaws: Mapping[str, float]
) -> str:
    """Find a position for each thing, the largest first; return the name of the first region without one."""
    area = packing.area
    for one in sorted(graph.things, key=lambda one: (not catalogue[one.kind].parts, -_extent(one, catalogue))):
        name, kind = start_region(one.name), catalogue[one.kind]
        if one.inside:
            continue
        if kind.parts or kind.is_anchored:
            if not packing.put(name, _swept(kind, area), _furniture_points(kind, area)):
                return name
            continue
        also = _beside(graph, one, catalogue, area)
        margin = _JITTER / math.sqrt(2) + _CLEARANCE
        outline = _disc(_extent(one, catalogue) + margin)
        if one.name in yaws:
            outline = _turned_outline(kind, yaws[one.name], margin)
        if not packing.put(name, outline, area.zone(one.place), also=also):
            return name
        side = round(2 * (_extent(one, catalogue) - kind.span) + _JITTER, 3) if one.count > 1 else _JITTER
        packing.regions[name] = packing.regions[name].model_copy(update={"size": (side, side)})
    for goal in graph.goals:
        if goal.relation == "at":
            name, span = goal_region(goal.object), catalogue[graph.thing(goal.object).kind].span
            if not packing.put(name, _disc(span + _GAP), area.zone(goal.target)):
                return name
            side = round(2 * span + 0.04, 3)
            packing.regions[name] = packing.regions[name].model_copy(update={"size": (side, side)})
    return ""


def _extent(one: Thing, catalogue: Mapping[str, KindEntry]) -> float:
    """Return the radius of the disc in which the objects of a thing start [m]."""
    span = catalogue[one.kind].span
    return span if one.count == 1 else (span + _CLEARANCE) * (1 + math.sqrt(one.count))


def _disc(radius: float) -> FloatArray:
    """Return a polygon (16, 2) around a disc at the origin [m]."""
    angles = np.linspace(0, 2 * np.pi, 16, endpoint=False)
    return radius / np.cos(np.pi / 16) * np.stack([np.cos(angles), np.sin(angles)], axis=1)


def _turned_outline(kind: KindEntry, yaw: float, margin: float) -> FloatArray:
    """Return the rectangle (4, 2) around a thing at a heading, including its rotations and a margin [m]."""
    points = []
    for turn in (yaw - TURN, yaw, yaw + TURN):
        cos, sin = math.cos(turn), math.sin(turn)
        points.append(np.array(kind.outline) @ np.array([[cos, sin], [-sin, cos]]))
    every = np.concatenate(points)
    return rectangle(every.min(axis=0) - margin, every.max(axis=0) + margin)


def _swept(kind: KindEntry, area: WorkArea) -> FloatArray:
    """Return the rectangle (4, 2) that furniture sweeps, including the variation of layouts [m]."""
    low, high = np.array(kind.swept[:2]), np.array(kind.swept[2:])
    grow = _JITTER / 2 + _CLEARANCE + _FURNITURE_YAW * float(np.abs(kind.swept).max())
    return rectangle(low - grow, high + grow) @ area.world_R_robot.T


def _furniture_points(kind: KindEntry, area: WorkArea) -> FloatArray:
    """Return positions (n, 2) of furniture in front of the robot [m], with space for a hand in front of its doors."""
    ahead = float(np.clip(_FRONT - kind.swept[0], *_FURNITURE))
    reach = float(np.linalg.norm(area.points - area.base, axis=1).max())
    ahead *= min(1.0, reach / 0.68)
    across = np.arange(-0.16, 0.17, 0.04) * min(1.0, reach / 0.68)
    points = np.stack([np.full(len(across), ahead), across], axis=1)
    return area.base + points @ area.world_R_robot.T


def _beside(graph: GoalGraph, one: Thing, catalogue: Mapping[str, KindEntry], area: WorkArea) -> list[FloatArray]:
    """Return outlines (n, 2) of things that will be put beside a thing, relative to its origin [m]."""
    found = []
    for goal in graph.goals:
        if goal.target == one.name and goal.relation in (*_SIDES, "beside"):
            radius = catalogue[graph.thing(goal.object).kind].span
            way = np.array(_SIDES.get(goal.relation, (0, 1)), dtype=float)
            distance = catalogue[one.kind].span + _GAP + radius
            found.append(_disc(radius + _CLEARANCE) * 0.9 + area.world_R_robot @ way * distance)
    return found
