"""Elastic band that straightens a path and pushes it away from walls; every point keeps the required clearance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nimbus.datagen.arrays import Float32Array, FloatArray

if TYPE_CHECKING:
    from nimbus.datagen.navigate.free_space import FreeSpace

_STEPS = 120
"""Number of iterations of the band."""
_PULL, _PUSH = 0.45, 0.35
"""Step sizes of an iteration: toward the midpoint of both neighbors, and away from walls."""
_WIDE = 0.6
"""Clearance above which walls do not push the path [m]."""


def resample(path: FloatArray, spacing: float) -> FloatArray:
    """Resample a path (n, d) to points (m, d) at equal distances of at most ``spacing`` [m]; the ends stay the same."""
    along = np.append(0.0, np.cumsum(np.linalg.norm(np.diff(path[:, :2], axis=0), axis=1)))
    keep = np.append(True, np.diff(along) > 1e-9)
    path, along = path[keep], along[keep]
    if len(path) < 2:
        return path
    count = max(2, int(np.ceil(along[-1] / spacing)) + 1)
    places = np.linspace(0.0, along[-1], count)
    return np.column_stack([np.interp(places, along, column) for column in path.T])


def smooth_path(space: FreeSpace, path: FloatArray, *, spacing: float = 0.1, wide: float = _WIDE) -> FloatArray:
    """Smooth a path; the ends stay the same, and every point keeps the body's clearance.

    Args:
        space: Free space that contains the path.
        path: (n, 3) path from start to goal [m].
        spacing: Largest spacing of the resulting points [m].
        wide: Clearance above which walls do not push the path [m].

    Returns:
        (m, 3) smooth path [m].
    """
    points = resample(path, spacing)
    limit = space.limit
    for _ in range(_STEPS):
        clearance, gradient = _measure(space, points)
        need = np.clip((wide - clearance) / max(wide - limit, 1e-9), 0.0, 1.0)[:, None]
        moved = points.copy()
        middle = 0.5 * (points[:-2, :2] + points[2:, :2])
        moved[1:-1, :2] += _PULL * (middle - points[1:-1, :2])
        moved[1:-1, :2] += _PUSH * spacing * (need * gradient)[1:-1]
        nodes = space.locate(moved)
        fine = (nodes >= 0) & (space.node_clearance[np.maximum(nodes, 0)] >= limit)
        fine[[0, -1]] = False
        moved[fine, 2] = space.positions[nodes[fine], 2]
        points = np.where(fine[:, None], moved, points)
    return resample(points, spacing)


def _measure(space: FreeSpace, points: FloatArray) -> tuple[Float32Array, FloatArray]:
    """Return the clearance (n,) at points (n, 3), and the unit direction (n, 2) in which it grows, or zeros."""
    x, y = space.cell * np.eye(3)[:2]
    # All cells are found in one call, because a call costs more than the search itself.
    places = np.stack([points, points + x, points - x, points + y, points - y])
    middle, right, left, front, back = space.clearance_at(places).reshape(5, -1)
    gradient = np.stack([right - left, front - back], axis=1).astype(float)
    length = np.linalg.norm(gradient, axis=1, keepdims=True)
    return middle, gradient / np.maximum(length, 1e-6)
