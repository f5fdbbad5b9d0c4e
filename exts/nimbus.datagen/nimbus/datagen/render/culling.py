"""Which meshes a ray can meet at all: by tile of the image, and by cell of a grid across the light."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.render.kernel_data import GRID, TILE

Float = NDArray[np.float64]

Bool = NDArray[np.bool_]

Lists = tuple[NDArray[np.int32], NDArray[np.int32]]
"""Where each list starts, and one more for the end of the last; and the members of all lists in a row."""

_NEAR = 2e-3
"""[m] What is closer to the camera than this is not looked for."""
_EDGES = np.array([(one, one | 1 << axis) for axis in range(3) for one in range(8) if not one >> axis & 1])
"""(12, 2) corners at the ends of a box's edges."""


def image_tiles(
    corners: Float,
    active: Bool,
    positions: Float,
    rotations: Float,
    *,
    focal: float,
    width: int,
    height: int,
) -> tuple[Float, Lists]:
    """The meshes whose boxes cover each tile, from near to far.

    Args:
        corners: (K, G, 8, 3) of each mesh's box, world frame [m].
        active: (K, G) which meshes to look at.
        positions: (K, 3) of the camera.
        rotations: (K, 3, 3) ``world_R_camera``, OpenGL axes.
        focal: [px]
        width: Of the image [px].
        height: Of the image [px].

    Returns:
        A lower bound of each mesh's distance (K, G) [m], and the meshes of each of the K * tiles tiles.
    """
    steps, count = corners.shape[:2]
    seen = np.matmul(corners.reshape(steps, -1, 3) - positions[:, None], rotations).reshape(steps, count, 8, 3)
    depth = -seen[..., 2]
    nearest = np.maximum(depth.min(axis=-1), 0.0)
    points, ahead = _cut_in_front(seen)
    x = 0.5 * width - focal * points[..., 0] / points[..., 2]
    y = 0.5 * height + focal * points[..., 1] / points[..., 2]
    shape = -(-height // TILE), -(-width // TILE)
    lower = np.stack([np.where(ahead, value, np.inf).min(axis=-1) / TILE for value in (y, x)], axis=-1)
    upper = np.stack([np.where(ahead, value, -np.inf).max(axis=-1) / TILE for value in (y, x)], axis=-1)
    order = np.argsort(nearest, axis=1, kind="stable")
    return nearest.astype(np.float32), _lists(lower, upper, active, shape, order=order)


def _cut_in_front(corners: Float) -> tuple[Float, Bool]:
    """Corners (K, G, 20, 3) of boxes cut at the near plane, and which of them exist."""
    ahead = corners[..., 2] < -_NEAR
    if ahead.all():
        return corners, ahead
    one, other = corners[:, :, _EDGES[:, 0]], corners[:, :, _EDGES[:, 1]]
    low, high = one[..., 2] + _NEAR, other[..., 2] + _NEAR
    crossing = (low < 0) != (high < 0)
    share = low / np.where(crossing, low - high, 1.0)
    points = np.concatenate([corners, one + share[..., None] * (other - one)], axis=2)
    exist = np.concatenate([ahead, crossing], axis=2)
    points[..., 2] = np.where(exist, points[..., 2], -1.0)
    return points, exist


def light_grid(corners: Float, casts: Bool, across: Float, along: Float) -> tuple[Float, Float, Lists]:
    """Cells of a grid across the light that the boxes of shadow casters cover.

    Args:
        corners: (K, G, 8, 3) world frame [m].
        casts: (K, G) which meshes cast shadows.
        across: (3,) a unit vector normal to the light.
        along: (3,) the other one.

    Returns:
        Corner (K, 2) [m] and cells per metre (K, 2) of each grid, and the casters over each of the K * cells cells.
    """
    flat = np.stack([corners @ along, corners @ across], axis=-1)
    lower, upper = flat.min(axis=2), flat.max(axis=2)
    corner = np.where(casts[..., None], lower, np.inf).min(axis=1)
    far = np.where(casts[..., None], upper, -np.inf).max(axis=1)
    corner, far = np.where(np.isfinite(corner), corner, 0.0), np.where(np.isfinite(far), far, 1.0)
    scale = GRID / np.maximum(far - corner, 1e-6)
    lists = _lists(
        (lower - corner[:, None]) * scale[:, None], (upper - corner[:, None]) * scale[:, None], casts, (GRID, GRID)
    )
    return corner[:, ::-1], scale[:, ::-1], lists


def _lists(
    lower: Float, upper: Float, active: Bool, shape: tuple[int, int], *, order: NDArray[np.intp] | None = None
) -> Lists:
    """What covers each cell of K grids, from the lower and upper ends (K, G, 2) of ranges of rows and columns."""
    size = np.array(shape)
    active = active & np.all((upper >= 0) & (lower < size), axis=-1)
    if order is None:
        step, mesh = np.nonzero(active)
    else:
        step, place = np.nonzero(np.take_along_axis(active, order, axis=1))
        mesh = order[step, place]
    first = np.clip(np.floor(lower[step, mesh]), 0, size - 1).astype(np.int64)
    counts = np.clip(np.floor(upper[step, mesh]), 0, size - 1).astype(np.int64) - first + 1
    total = counts.prod(axis=1)
    pair = np.repeat(np.arange(len(total)), total)
    within = np.arange(len(pair)) - np.repeat(np.cumsum(total) - total, total)
    row, column = first[pair, 0] + within // counts[pair, 1], first[pair, 1] + within % counts[pair, 1]
    cell = (step[pair] * shape[0] + row) * shape[1] + column
    start = np.zeros(len(lower) * shape[0] * shape[1] + 1, dtype=np.int32)
    np.cumsum(np.bincount(cell, minlength=len(start) - 1), out=start[1:])
    return start, mesh[pair[np.argsort(cell, kind="stable")]].astype(np.int32)
