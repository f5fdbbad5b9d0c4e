"""Route of one episode: a path is searched, smoothed and driven, and its clearance is measured."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.navigate.drive import DriveLimits, DrivenPath, drive_path
from nimbus.datagen.navigate.keep import swept_clearance
from nimbus.datagen.navigate.scene_map import SceneMap
from nimbus.datagen.navigate.smooth import smooth_path

_WIDE = 0.5
"""Clearance that a path keeps if the scene allows it [m]."""
_EVERY = 12
"""Number of rows between two exact geodesic distances to the goal; values between them are interpolated."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Route:
    """Drive from start to goal with measurements, in T rows."""

    driven: DrivenPath
    """Poses and actions of the drive."""
    feet: FloatArray
    """(T, 3) positions of the body on the floor [m]."""
    clearance: FloatArray
    """(T,) smallest horizontal distance of the body's axis to a triangle up to the next row [m]."""
    distance_to_goal: FloatArray
    """(T,) geodesic distance to the goal [m]."""
    progress: FloatArray
    """(T,) distance along the path [m]."""


def find_route(
    place: SceneMap,
    start: tuple[float, float, float, float],
    goal: tuple[float, float, float],
    *,
    limits: DriveLimits,
    rate: float,
    facing: tuple[float, float, float] | None = None,
) -> Route | None:
    """Find the route of an episode; None if there is no path.

    Args:
        place: Scene with its free space.
        start: Position x, y, z [m] and yaw [rad] of the start.
        goal: Position of the goal [m].
        limits: Limits of the drive.
        rate: Rows per second [Hz].
        facing: Point that the body faces at the end [m]; None to keep the heading of arrival.
    """
    space = place.space
    ends = space.locate(np.array([start[:3], goal]))
    path = place.search.path(int(ends[0]), int(ends[1]), wide=_WIDE) if ends.min() >= 0 else None
    if path is None:
        return None
    smooth = smooth_path(space, space.positions[path], wide=_WIDE)
    end_yaw = None if facing is None else float(np.arctan2(facing[1] - goal[1], facing[0] - goal[0]))
    driven = drive_path(smooth, limits, rate=rate, yaw=start[3], end_yaw=end_yaw)
    feet = _on_floor(place, driven, smooth)
    body = space.body
    return Route(
        driven=driven,
        feet=feet,
        clearance=swept_clearance(place.mesh, feet, step=body.step, height=body.height),
        distance_to_goal=_geodesics(place, feet, int(ends[1])),
        progress=driven.along,
    )


def _on_floor(place: SceneMap, driven: DrivenPath, smooth: FloatArray) -> FloatArray:
    """Return the positions (T, 3) of a drive on the floor that is nearest to the height of its path [m]."""
    along = np.append(0.0, np.cumsum(np.linalg.norm(np.diff(smooth[:, :2], axis=0), axis=1)))
    guess = np.interp(driven.along, along, smooth[:, 2])
    feet = np.column_stack([driven.poses[:, :2], guess])
    nodes = place.space.locate(feet)
    found = place.space.positions[np.maximum(nodes, 0), 2]
    feet[:, 2] = np.where(nodes >= 0, found, guess)
    return feet


def _geodesics(place: SceneMap, feet: FloatArray, goal: int) -> FloatArray:
    """Return the geodesic distance (T,) to the goal [m]; it is exact at every 12th row and interpolated between."""
    rows = np.unique(np.append(np.arange(0, len(feet), _EVERY), len(feet) - 1))
    nodes = place.space.locate(feet[rows])
    wide = place.space.node_clearance >= place.space.limit
    values = np.array(
        [place.geodesic(int(node), goal) if node >= 0 and wide[node] else np.inf for node in nodes], dtype=float
    )
    fine = np.isfinite(values)
    return np.interp(np.arange(len(feet)), rows[fine], values[fine]) if fine.any() else np.zeros(len(feet))
