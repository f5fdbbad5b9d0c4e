"""Release poses of a held object: on a surface, beside another object, or inside a container."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.geometry.mujoco_library import mujoco
from nimbus.datagen.geometry.transforms import quat_from_axis_angle, quat_to_matrix

if TYPE_CHECKING:
    from nimbus.datagen.objects.model import ObjectModel, RestPose
    from nimbus.datagen.tasks.workcell_interface import Physics, Workcell

_DEPTH = 2.0
"""Largest distance below the start of a search at which a support is found [m]."""
_SKIPPED = 1e-4
"""Distance below an ignored surface at which a search continues [m]."""
Release = tuple[FloatArray, FloatArray]
"""Two poses ``world_T_tool`` (4, 4): above the release, and at the release."""

SIDES: dict[str, FloatArray] = {
    "left": np.array([0.0, 1.0]),
    "right": np.array([0.0, -1.0]),
    "behind": np.array([1.0, 0.0]),
    "front": np.array([-1.0, 0.0]),
}
"""Directions x, y in the world by name, as seen by a robot that looks along x; front is nearer to it."""

_FINGERS = 0.02
"""Clearance for the fingers around an object that is put down [m]."""
FIRST_OPENING = 0.01
"""Travel of each finger before the retreat [m]; it is short, so that fingers do not touch walls and neighbors."""
_GAP = 0.001
"""Height above its support at which an object is released [m]."""
_ABOVE = 0.06
"""Height above the release at which the straight descent begins [m]."""
_TURNS = np.radians([0, 90, -90, 180, 45, -45, 135, -135])
"""Changes of an object's heading that are tried [rad]."""
_LEVEL = 0.002
"""Roughness up to which a surface supports an object [m]."""
_STEP, _MOST_STEPS = 0.015, 4
"""Smallest distance between spots of a region [m], and largest number of spots to each side of its center."""
_CELLS = 7
"""Number of spots along each side of a surface."""


def measure_support_heights(
    cell: Workcell, points: FloatArray, *, top: float, ignored: Collection[str] = ()
) -> FloatArray:
    """Return the height of the first support below each point, ignoring the robot and the held object.

    Args:
        cell: The scene.
        points: (N, 2) x, y in the world [m].
        top: Height from which to search downward [m].
        ignored: Further bodies to ignore.

    Returns:
        (N,) [m], ``-inf`` where there is nothing.
    """
    passed = _passed(cell, ignored)
    return np.array([find_solid_below(cell.simulation, np.array([x, y, top]), passed) for x, y in points])


def _passed(cell: Workcell, ignored: Collection[str]) -> NDArray[np.bool_]:
    """Return a mask (B,) of the bodies to ignore."""
    model = cell.simulation.model
    hand = model.body(cell.robot.tool.link).id
    # All links of the robot have the root of its hand. Body 0 is the world, which always supports objects.
    passed = np.asarray(model.body_rootid == model.body_rootid[hand]) & (np.arange(model.nbody) > 0)
    for name in (*ignored, *([cell.held] if cell.held else [])):
        passed[model.body(name).id] = True
    return passed


def find_solid_below(
    simulation: Physics, start: FloatArray, passed: NDArray[np.bool_], *, skipped: float = _SKIPPED
) -> float:
    """Return the height of the first solid surface below a point [m]; ``-inf`` where there is nothing.

    Args:
        simulation: The scene.
        start: (3,) point in the world [m].
        passed: (B,) mask of the bodies to ignore.
        skipped: Distance below an ignored surface in which no surface is found [m].
    """
    model, data = simulation.model, simulation.data
    down, geom = np.array([0.0, 0.0, -1.0]), np.array([-1], dtype=np.int32)
    lowest = start[2] - _DEPTH
    while start[2] > lowest:
        distance = mujoco.mj_ray(model, data, start, down, None, 1, -1, geom)
        if distance < 0:
            break
        solid = model.geom_contype[geom[0]] or model.geom_conaffinity[geom[0]]
        if solid and not passed[model.geom_bodyid[geom[0]]]:
            return float(start[2] - distance)
        # Continue just below the ignored surface; without the offset the ray would hit it again.
        start = start - (0.0, 0.0, distance + skipped)
    return -np.inf


@dataclass(frozen=True)
class ReleaseSpot:
    """Position for putting down an object."""

    position: FloatArray
    """(2,) x, y in the world [m]."""
    side: FloatArray = field(default_factory=lambda: np.zeros(2))
    """(2,) direction from the position to the object; zeros center the object's outline at the position, and
    ``(0, 1)`` places it beyond the position along y."""
    room: float | None = _FINGERS
    """Clearance [m] around the outline, which must lie on one level surface; None omits both checks."""


def nearest_rest_pose(model: ObjectModel, rotation: FloatArray) -> RestPose:
    """Return the rest pose with the least tilt from an orientation (3, 3) ``world_R_object``."""
    up = rotation.T @ (0.0, 0.0, 1.0)
    return max(model.rest_poses, key=lambda rest: float(quat_to_matrix(rest.wxyz).T[:, 2] @ up))


def heading(rotation: FloatArray) -> float:
    """Return the heading [rad] of a frame (3, 3) ``world_R_frame``, from its x or y axis, whichever is more level."""
    axis = 0 if abs(rotation[2, 0]) <= abs(rotation[2, 1]) else 1
    angle = float(np.arctan2(rotation[1, axis], rotation[0, axis]))
    return angle - axis * np.pi / 2


def release_poses(
    cell: Workcell, name: str, spots: Iterable[ReleaseSpot], *, rest: RestPose, yaws: Iterable[float], top: float
) -> Iterator[Release]:
    """Yield releases that put the held object down in a rest pose, spot by spot.

    Args:
        cell: The scene, with the object in the hand.
        name: The object.
        spots: Spots in order of preference.
        rest: Rest pose of the object after the release.
        yaws: Headings in order of preference [rad].
        top: Height above all possible supports [m].
    """
    model, object_T_tool = cell.model(name), np.linalg.inv(cell.tool_T_held())
    points = np.vstack([vertices for vertices, _ in model.convex_pieces])
    turns = [
        (turn := quat_to_matrix(quat_from_axis_angle((0, 0, 1), yaw)) @ quat_to_matrix(rest.wxyz), points @ turn.T)
        for yaw in yaws
    ]
    for spot, (turn, there) in itertools.product(spots, turns):
        lower, upper = there.min(axis=0), there.max(axis=0)
        origin = spot.position + spot.side * (upper - lower)[:2] / 2 - (lower + upper)[:2] / 2
        height = _standing_height(cell, there, origin, top, spot.room)
        if height is None:
            continue
        release = np.eye(4)
        release[:3, :3] = turn
        release[:3, 3] = *origin, height + _GAP
        above = release.copy()
        above[2, 3] += _ABOVE
        yield above @ object_T_tool, release @ object_T_tool


def _standing_height(
    cell: Workcell, points: FloatArray, origin: FloatArray, top: float, room: float | None
) -> float | None:
    """Return the height at which a shape, points (n, 3) about its origin, is supported; None if it cannot stand."""
    lower, upper = points.min(axis=0), points.max(axis=0)
    # Vertices alone would miss obstacles between them; the grid checks the area below the outline.
    grid = _grid(lower[:2], upper[:2], 5)
    low = np.concatenate([points[:, 2], np.full(len(grid), lower[2])])
    support = measure_support_heights(cell, origin + np.vstack([points[:, :2], grid]), top=top)
    height = float((support - low).max())
    if not np.isfinite(height):
        return None
    if room is not None:
        around = _grid(lower[:2] - room, upper[:2] + room, 5)
        around = measure_support_heights(cell, origin + around, top=top)
        # The outline must lie on one level surface. Nothing around it may be higher, because the fingers open there.
        if np.ptp(support[len(points) :]) > _LEVEL or around.max() > height + lower[2] + _LEVEL:
            return None
    return height


def _grid(lower: FloatArray, upper: FloatArray, count: int) -> FloatArray:
    x, y = (np.linspace(lower[axis], upper[axis], count) for axis in range(2))
    return np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)


def similar_yaws(turn: FloatArray, *, along: FloatArray | None = None) -> list[float]:
    """Return headings to try, the smallest rotation first [rad].

    Args:
        turn: (3, 3) current rotation of the object relative to its rest pose.
        along: (3, 3) ``world_R_reference`` of a thing whose sides the object aligns with.
    """
    now = float(np.arctan2(turn[1, 0], turn[0, 0]))
    if along is None:
        return [now + float(change) for change in _TURNS]
    quarter, line = np.pi / 2, heading(along)
    first = line + quarter * round((now - line) / quarter)
    return [first + change for change in (0.0, quarter, -quarter, 2 * quarter)]


def find_spots_inside(center: FloatArray, size: FloatArray, *, outline: FloatArray) -> list[ReleaseSpot]:
    """Return spots in a rectangle: first those where the outline fits inside, each group by distance from the center.

    Args:
        center: (2,) [m].
        size: (2,) [m].
        outline: (2,) size of the object [m].
    """
    counts = [2 * min(_MOST_STEPS, int(0.5 * side / _STEP)) + 1 for side in size]
    x, y = (
        side * np.linspace(-0.5, 0.5, count) if count > 1 else np.zeros(1)
        for side, count in zip(size, counts, strict=True)
    )
    spots = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    sticks_out = np.maximum(np.abs(spots) - _inner_half(size, outline), 0.0).max(axis=1) > 1e-9
    # Rounded distances make the order of symmetric spots independent of the last bit.
    order = np.lexsort((np.linalg.norm(spots, axis=1).round(6), sticks_out))
    return [ReleaseSpot(center + spots[place]) for place in order]


def draw_spots_inside(
    center: FloatArray,
    size: FloatArray,
    *,
    outline: FloatArray,
    spread: float,
    rng: np.random.Generator,
    count: int = 24,
) -> list[ReleaseSpot]:
    """Draw random spots of a rectangle.

    Args:
        center: (2,) [m].
        size: (2,) [m].
        outline: (2,) size of the object, which stays inside the rectangle if it fits [m].
        spread: Fraction of the rectangle, about its center, to draw from.
        rng: Stream of the draws.
        count: Number of spots.
    """
    half = np.minimum(0.5 * spread * size, _inner_half(size, outline))
    return [ReleaseSpot(center + rng.uniform(-half, half)) for _ in range(count)]


def _inner_half(size: FloatArray, outline: FloatArray) -> FloatArray:
    return np.maximum(0.5 * (size - outline), 0.0)


def find_spots_on(lower: FloatArray, upper: FloatArray) -> list[ReleaseSpot]:
    """Return spots between corners (2,) [m] by distance from the center, then the center without any check."""
    middle = (lower + upper) / 2
    inner = _grid(lower + (upper - lower) * 0.1, upper - (upper - lower) * 0.1, _CELLS)
    inner = inner[np.argsort(np.linalg.norm(inner - middle, axis=1), kind="stable")]
    return [*map(ReleaseSpot, inner), ReleaseSpot(middle, room=None)]


def find_spots_beside(lower: FloatArray, upper: FloatArray, *, sides: Iterable[str], gap: float) -> list[ReleaseSpot]:
    """Return spots beside an outline, given by corners (2,) [m], at a distance of ``gap`` [m]."""
    middle, half = (lower + upper) / 2, (upper - lower) / 2
    room = max(0.0, min(_FINGERS, gap - 0.005))
    return [ReleaseSpot(middle + SIDES[side] * (half + gap), SIDES[side], room) for side in sides]
