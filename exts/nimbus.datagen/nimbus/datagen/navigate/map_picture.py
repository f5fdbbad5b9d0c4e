"""Picture of a scene from above: free area, paths, starts, goals, and the share that the paths cover."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image, ImageDraw

from nimbus.datagen.arrays import FloatArray, ImageArray

if TYPE_CHECKING:
    from nimbus.datagen.navigate.free_space import FreeSpace

COVERED = 0.5
"""Distance from a path up to which free area is covered [m]."""
_SIDE = 640
"""Longer side of a map [px]."""
_MARGIN = 0.5
"""Margin around paths where the free area is not known [m]."""
_PAPER, _BLOCKED, _FREE, _NEAR = (250, 250, 248), (222, 222, 226), (196, 205, 214), (176, 214, 186)
_PATH, _START, _GOAL, _FAILED = (60, 110, 200), (40, 140, 70), (200, 50, 60), (150, 150, 156)
_DOT = 3
"""Radius of starts and goals [px]."""


@dataclass(frozen=True, kw_only=True, eq=False)
class MapPaths:
    """Paths of one scene."""

    paths: Sequence[FloatArray]
    """(T, 3) each [m]."""
    starts: FloatArray
    """(n, 2) starts of the paths [m]."""
    goals: FloatArray
    """(n, 2) goals of the paths [m]."""
    failed: FloatArray
    """(m, 2) starts of attempts without a path [m]."""


def draw_map(found: MapPaths, space: FreeSpace | None) -> tuple[ImageArray, float | None]:
    """Draw a map (H, W, 3), x to the right and y up.

    Args:
        found: Paths, at least one where there is no free space.
        space: Free space of the scene; None: the paths are drawn without it.

    Returns:
        The map, and the share of the free area that the paths cover; None without free space.
    """
    share = None
    if space is None:
        points = np.concatenate(found.paths)[:, :2]
        low, high = points.min(axis=0) - _MARGIN, points.max(axis=0) + _MARGIN
        scale = _SIDE / float((high - low).max())
        rows, columns = np.ceil((high - low) * scale).astype(int)
        ground = np.full((rows, columns, 3), _PAPER, dtype=np.uint8)
    else:
        ground, share = _ground(found, space)
        low = np.array(space.origin)
        factor = max(1, _SIDE // max(ground.shape[:2]))
        ground = ground.repeat(factor, axis=0).repeat(factor, axis=1)
        scale = factor / space.cell
    return _draw(ground, found, low, scale), share


def _ground(found: MapPaths, space: FreeSpace) -> tuple[ImageArray, float]:
    """Color the cells (X, Y, 3) of a scene, and return the share of the free area that paths cover."""
    from scipy.spatial import KDTree

    nodes = space.main_nodes
    covered = np.zeros(len(nodes), dtype=bool)
    if found.paths:
        tree = KDTree(np.concatenate(found.paths))
        apart, _ = tree.query(space.positions[nodes], distance_upper_bound=2 * COVERED)
        covered = apart <= COVERED
    ground = np.full((*space.heights.shape[1:], 3), _PAPER, dtype=np.uint8)
    ground[np.isfinite(space.heights).any(axis=0)] = _BLOCKED
    _, i, j = space.nodes[nodes].T
    ground[i, j] = np.where(covered[:, None], _NEAR, _FREE)
    return ground, float(covered.mean())


def _draw(ground: ImageArray, found: MapPaths, low: FloatArray, scale: float) -> ImageArray:
    """Draw paths onto cells: x to the right, y up."""
    image = Image.fromarray(np.ascontiguousarray(ground.transpose(1, 0, 2)[::-1]))
    draw, height = ImageDraw.Draw(image), image.height

    def pixel(point: FloatArray) -> tuple[float, float]:
        right, up = (point[:2] - low) * scale
        return float(right), float(height - up)

    for path in found.paths:
        draw.line([pixel(point) for point in path[::3]] + [pixel(path[-1])], fill=_PATH, width=1)
    for points, color in ((found.failed, _FAILED), (found.starts, _START), (found.goals, _GOAL)):
        for x, y in map(pixel, points):
            draw.ellipse((x - _DOT, y - _DOT, x + _DOT, y + _DOT), fill=color)
    return np.asarray(image)
