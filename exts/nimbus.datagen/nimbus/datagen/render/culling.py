"""Which meshes a ray can meet at all: by tile of the image, and by cell of a grid across the light."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.render.raytrace import GRID, TILE

Float = NDArray[np.float64]

Lists = tuple[NDArray[np.int32], NDArray[np.int32]]
"""Where each list starts, and one more for the end of the last; and the members of all lists in a row."""

_NEAR = 2e-3
"""[m] What is closer to the camera than this is not looked for."""
_EDGES = np.array([(one, one | 1 << axis) for axis in range(3) for one in range(8) if not one >> axis & 1])
"""(12, 2) corners at the ends of a box's edges."""


def image_tiles(
    corners: Float, positions: Float, rotations: Float, *, focal: float, width: int, height: int
) -> tuple[Float, Lists]:
    """The meshes whose boxes cover each tile, from near to far.

    Args:
        corners: (K, G, 8, 3) of each mesh's box, world frame [m].
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
    nearest[depth.max(axis=-1) < _NEAR] = np.inf
    order = np.argsort(nearest, axis=1, kind="stable").astype(np.int32)
    points, ahead = _cut_in_front(seen)
    x = 0.5 * width - focal * points[..., 0] / points[..., 2]
    y = 0.5 * height + focal * points[..., 1] / points[..., 2]
    columns = _covered(x, ahead, -(-width // TILE))
    rows = _covered(y, ahead, -(-height // TILE))
    covered = rows[:, :, :, None] & columns[:, :, None, :]
    covered = np.take_along_axis(covered, order[:, :, None, None], axis=1)
    start, places = _lists(covered)
    step = np.repeat(np.arange(steps), np.diff(start).reshape(steps, -1).sum(axis=1))
    return nearest.astype(np.float32), (start, order[step, places])


def _cut_in_front(corners: Float) -> tuple[Float, NDArray[np.bool_]]:
    """Corners (K, G, 20, 3) of boxes cut at the near plane, and which of them exist."""
    one, other = corners[:, :, _EDGES[:, 0]], corners[:, :, _EDGES[:, 1]]
    low, high = one[..., 2] + _NEAR, other[..., 2] + _NEAR
    crossing = (low < 0) != (high < 0)
    share = low / np.where(crossing, low - high, 1.0)
    cuts = one + share[..., None] * (other - one)
    points = np.concatenate([corners, cuts], axis=2)
    ahead = np.concatenate([corners[..., 2] < -_NEAR, crossing], axis=2)
    points[..., 2] = np.where(ahead, points[..., 2], -1.0)
    return points, ahead


def _covered(pixels: Float, exist: NDArray[np.bool_], count: int) -> NDArray[np.bool_]:
    """(K, G, count) whether tiles along one axis lie in the range of pixels (K, G, n)."""
    first = np.floor(np.where(exist, pixels, np.inf).min(axis=-1) / TILE)
    last = np.floor(np.where(exist, pixels, -np.inf).max(axis=-1) / TILE)
    tile = np.arange(count)
    return (tile >= first[..., None]) & (tile <= last[..., None])


def _lists(covered: NDArray[np.bool_]) -> Lists:
    """Starts and members of the lists of what covers each cell, from (K, G, rows, columns)."""
    cells = np.moveaxis(covered, 1, -1).reshape(-1, covered.shape[1])
    _, members = np.nonzero(cells)
    start = np.zeros(len(cells) + 1, dtype=np.int32)
    np.cumsum(cells.sum(axis=1), out=start[1:])
    return start, members.astype(np.int32)


def light_grid(corners: Float, across: Float, along: Float, casts: NDArray[np.bool_]) -> tuple[Float, Float, Lists]:
    """Cells of a grid across the light that the boxes of shadow casters cover.

    Args:
        corners: (K, G, 8, 3) world frame [m].
        across: (3,) a unit vector normal to the light.
        along: (3,) the other one.
        casts: (G,)

    Returns:
        Corner (K, 2) [m] and cells per metre (K, 2) of each grid, and the casters over each of the K * cells cells.
    """
    steps = len(corners)
    if not casts.any():
        return (
            np.zeros((steps, 2)),
            np.ones((steps, 2)),
            (np.zeros(steps * GRID * GRID + 1, np.int32), np.zeros(1, np.int32)),
        )
    casters = np.flatnonzero(casts).astype(np.int32)
    flat = np.stack([corners[:, casters] @ across, corners[:, casters] @ along], axis=-1)
    lower, upper = flat.min(axis=2), flat.max(axis=2)
    corner = lower.min(axis=1)
    scale = GRID / np.maximum(upper.max(axis=1) - corner, 1e-6)
    first = np.floor((lower - corner[:, None]) * scale[:, None])
    last = np.floor((upper - corner[:, None]) * scale[:, None])
    cell = np.arange(GRID)
    inside = (cell >= first[..., None]) & (cell <= last[..., None])
    start, members = _lists(inside[:, :, 1, :, None] & inside[:, :, 0, None, :])
    return corner, scale, (start, casters[members])
