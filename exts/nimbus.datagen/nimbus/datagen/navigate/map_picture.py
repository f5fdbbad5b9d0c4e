"""Map of a scene: an image from above with free area, paths, starts and goals; and the fraction that paths cover."""

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
"""Distance from a path within which free area counts as covered [m]."""
_SIDE = 640
"""Longer side of a map [px]."""
_MARGIN = 0.5
"""Margin around the paths in a map without free space [m]."""
_PAPER, _BLOCKED, _FREE, _NEAR = (250, 250, 248), (222, 222, 226), (196, 205, 214), (176, 214, 186)
_PATH, _START, _GOAL, _FAILED = (60, 110, 200), (40, 140, 70), (200, 50, 60), (150, 150, 156)
_DOT = 3
"""Radius of the dots that mark starts and goals [px]."""


@dataclass(frozen=True, kw_only=True, eq=False)
class MapPaths:
    """Paths of the episodes in one scene."""

    paths: Sequence[FloatArray]
    """Paths, each (T, 3) [m]."""
    starts: FloatArray
    """(n, 2) starts of the paths [m]."""
    goals: FloatArray
    """(n, 2) goals of the paths [m]."""
    failed: FloatArray
    """(m, 2) starts of failed attempts [m]."""


def draw_map(found: MapPaths, space: FreeSpace | None) -> tuple[ImageArray, float | None]:
    """Draw the map of a scene, with x to the right and y up.

    Args:
        found: Paths to draw; at least one if ``space`` is None.
        space: Free space of the scene; None to draw only the paths.

    Returns:
        (H, W, 3) sRGB image, and the fraction of the free area that the paths cover; None without free space.
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
    """Return the colors (X, Y, 3) of the cells, and the fraction of the free area that the paths cover."""
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
    """Draw the paths onto colored cells (X, Y, 3); return an image with x to the right and y up."""
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
