"""Positions for objects: on a surface, apart from each other and from obstacles, or inside a container."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.geometry.hulls import qhull
from nimbus.datagen.geometry.transforms import quat_to_matrix
from nimbus.datagen.objects.model import ObjectModel

_TRIES = 200
"""Number of positions tried for one object before all objects start over."""
_RESTARTS = 20
"""Number of times that all objects start over before a region counts as too small."""
_GAP = 0.0008
"""Distance between objects in a container, and from its walls [m]; they settle before the recording."""


@dataclass(frozen=True)
class PlacementPose:
    """Pose of an object on a surface: x, y [m] in the world, yaw [rad] about the vertical."""

    x: float
    y: float
    yaw: float


class NoRoomError(Exception):
    """Raised if a region cannot hold the objects at the requested distance."""


def footprint(vertices: ArrayLike, wxyz: ArrayLike) -> FloatArray:
    """Return the convex outline (n, 2) of a shape in a rest pose seen from above, counter-clockwise [m]."""
    points = (np.asarray(vertices) @ quat_to_matrix(wxyz).T)[:, :2]
    return points[qhull(points).vertices]


def rectangle(lower: ArrayLike, upper: ArrayLike) -> FloatArray:
    """Return the outline of an axis-aligned rectangle, counter-clockwise.

    Args:
        lower: (2,) or (3,) lowest corner [m]; z is ignored.
        upper: (2,) or (3,) highest corner [m]; z is ignored.

    Returns:
        (4, 2) corners [m].
    """
    (x0, y0), (x1, y1) = np.asarray(lower)[:2], np.asarray(upper)[:2]
    return np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1]], dtype=float)


def gap(one: FloatArray, other: FloatArray) -> float:
    """Return a lower bound of the distance between two convex outlines [m]; it is negative if they overlap.

    Args:
        one: (n, 2) outline, counter-clockwise [m].
        other: (m, 2) outline, counter-clockwise [m].
    """
    return max(_separation(one, other), _separation(other, one))


def _separation(one: FloatArray, other: FloatArray) -> float:
    """Return the largest distance of ``other`` beyond any edge line of ``one`` (separating axes)."""
    edges = np.roll(one, -1, axis=0) - one
    normals = np.stack([edges[:, 1], -edges[:, 0]], axis=1)
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    offsets = np.einsum("ij,ij->i", normals, one)
    return float((normals @ other.T - offsets[:, None]).min(axis=1).max())


def moved(outline: FloatArray, place: PlacementPose) -> FloatArray:
    """Transform an outline to a pose.

    Args:
        outline: (n, 2) outline relative to the object's origin [m].
        place: Pose in the world.

    Returns:
        (n, 2) outline in the world frame [m].
    """
    cos, sin = np.cos(place.yaw), np.sin(place.yaw)
    return outline @ np.array([[cos, sin], [-sin, cos]]) + (place.x, place.y)


def find_places(
    outlines: Sequence[FloatArray],
    streams: Sequence[np.random.Generator],
    *,
    center: tuple[float, float],
    size: tuple[float, float],
    yaw: tuple[float, float],
    clearance: float,
    obstacles: Sequence[FloatArray] = (),
    reachable: Callable[[float, float], bool] = lambda x, y: True,
) -> list[PlacementPose]:
    """Draw a position for each outline from its own stream.

    Args:
        outlines: (n, 2) convex outlines relative to the objects' origins [m].
        streams: One generator for each object.
        center: Center of the region [m].
        size: Extent of the region along x and y [m]; it contains the origins of the objects.
        yaw: Range of yaw [rad].
        clearance: Smallest distance between objects, and to obstacles [m].
        obstacles: (n, 2) outlines in the world [m].
        reachable: Function that returns True for a usable point of the region.

    Raises:
        NoRoomError: No arrangement was found.
    """
    # An overfull region is refused at once, because the search below would need all its tries to find that out.
    if not _fit_by_area(outlines, size, clearance):
        raise NoRoomError
    low, high = np.subtract(center, np.divide(size, 2)), np.add(center, np.divide(size, 2))

    def try_place(outline: FloatArray, rng: np.random.Generator, taken: list[FloatArray]) -> PlacementPose | None:
        """Draw positions for an outline until one is free; return None after too many tries.

        Args:
            outline: (n, 2) outline relative to the object's origin [m].
            rng: Random stream of the object.
            taken: (m, 2) outlines that are already placed, in the world frame [m].
        """
        for _ in range(_TRIES):
            x, y = (float(value) for value in rng.uniform(low, high))
            place = PlacementPose(x, y, float(rng.uniform(*yaw)))
            outline_there = moved(outline, place)
            if reachable(x, y) and all(gap(outline_there, other) >= clearance for other in taken):
                return place
        return None

    # The first objects may block the last one, so all start over. Streams continue, so each start tries new positions.
    for _ in range(_RESTARTS):
        taken, places = list(obstacles), []
        for outline, rng in zip(outlines, streams, strict=True):
            place = try_place(outline, rng, taken)
            if place is None:
                break
            places.append(place)
            taken.append(moved(outline, place))
        if len(places) == len(outlines):
            return places
    raise NoRoomError


def _fit_by_area(outlines: Sequence[FloatArray], size: tuple[float, float], clearance: float) -> bool:
    """Return False if no arrangement can exist, by the areas of the outlines grown by half the clearance."""
    # Steiner's formula: a convex outline grown by r has the area A + perimeter * r + pi * r^2. Origins are inside the
    # region, and outlines may extend beyond its edges by their reach.
    grow, needed, reach = clearance / 2, 0.0, 0.0
    for outline in outlines:
        x, y = outline.T
        area = float(x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2
        perimeter = float(np.linalg.norm(np.roll(outline, -1, axis=0) - outline, axis=1).sum())
        needed += area + perimeter * grow + np.pi * grow**2
        reach = max(reach, float(np.linalg.norm(outline, axis=1).max()) + grow)
    return needed <= (size[0] + 2 * reach) * (size[1] + 2 * reach)


def fill(cavity: FloatArray, models: Sequence[ObjectModel], rng: np.random.Generator) -> list[FloatArray]:
    """Return points (3,) in the frame of a container for the centers of objects that fill it in layers.

    Args:
        cavity: (2, 3) lower and upper corner of the cavity [m]; only its inscribed ellipse is used.
        models: Objects to place.
        rng: Random stream that selects points in the last layer.

    Raises:
        NoRoomError: Objects would rise above the rim.
    """
    sizes = np.array([model.bounds[1] - model.bounds[0] for model in models])
    # Objects may have any yaw, so each gets the circle around its footprint; a ball only needs its own radius.
    radius = float(sizes.max() / 2) if _are_balls(models) else max(map(_reach, models, sizes))
    height = float(sizes[:, 2].max())
    low, high = cavity
    middle, half = (low + high)[:2] / 2, (high - low)[:2] / 2 - radius - _GAP
    if half.min() < 0.0:
        raise NoRoomError
    layer = _layer(half, 2 * radius + _GAP)
    points: list[FloatArray] = []
    floor = low[2] + height / 2 + _GAP
    while len(points) < len(models):
        if floor + height / 2 > high[2]:
            raise NoRoomError
        # The points are shuffled, because the last layer is rarely full and would otherwise always have the same gaps.
        points += [np.array([*(middle + layer[index]), floor]) for index in rng.permutation(len(layer))]
        floor += height + _GAP
    return points[: len(models)]


def _are_balls(models: Sequence[ObjectModel]) -> bool:
    return all(model.ball > 0.0 for model in models)


def _reach(model: ObjectModel, size: FloatArray) -> float:
    """Return the radius of the circle that an object of a size (3,) needs at any yaw [m]."""
    return float(size[:2].max() if model.heap else np.linalg.norm(size[:2])) / 2


def _layer(half: FloatArray, pitch: float) -> FloatArray:
    """Return the points (n, 2) of a square grid inside an ellipse, with the offset that gives the most points [m]."""
    best = np.zeros((1, 2))
    for shift in ((0.0, 0.0), (0.5, 0.5), (0.5, 0.0)):
        count = np.ceil(half / pitch).astype(int) + 1
        x, y = ((np.arange(-n, n + 1) + part) * pitch for n, part in zip(count, shift, strict=True))
        grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
        inside = grid[((grid / np.maximum(half, 1e-9)) ** 2).sum(axis=1) <= 1.0 + 1e-9]
        if len(inside) > len(best):
            best = inside
    return best
