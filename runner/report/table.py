"""Picture of the table for the report: reach and yield of its cells, drawn over a rectified camera image."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.analysis.yields import CELL, YieldRow, Yields
from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.media.pages import jpeg_uri
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.runner.media.preview import readable

_SCALE = 1000
"""Scale of the drawing [px/m]."""
_LEAST_SEEN = 0.6
"""Smallest fraction of the table's area that a camera must see."""
_MARGIN = 0.08
"""Margin around cells and regions that shows their surroundings [m]."""
_BIN = 0.005
"""Width of the bins of the histogram in which the table's height is found [m]."""


@dataclass(frozen=True)
class _TableArea:
    """Part of the table [m], and its position in the picture from above, with the robot below."""

    x: tuple[float, float]
    y: tuple[float, float]

    def square(self, x: float, y: float, size_x: float, size_y: float) -> PictureRect:
        """Place a rectangle whose lower corner is at x, y [m]."""
        left, top = (self.y[1] - y - size_y) * _SCALE, (self.x[1] - x - size_x) * _SCALE
        return PictureRect(left, top, size_y * _SCALE, size_x * _SCALE)


@dataclass(frozen=True)
class PictureRect:
    """Rectangle in the picture [px]."""

    left: float
    top: float
    width: float
    height: float


@dataclass(frozen=True, kw_only=True)
class TableMap:
    """Picture of the table with reach and yield of its cells; all lengths are pixels."""

    width: int
    height: int
    picture: str
    """Address of the picture below; empty if no camera shows the table."""
    cells: list[tuple[PictureRect, YieldRow]]
    beyond: list[PictureRect]
    """Rectangles out of the robot's reach."""
    regions: dict[str, PictureRect]
    cell_size: float = CELL
    """Side of a cell [m]."""


def map_table(yields: Yields, *, reach: Mapping[str, Any], episodes: Sequence[Path]) -> TableMap | None:
    """Map reach and yield of the cells; None if no positions are known.

    Args:
        yields: Yields of the dataset.
        reach: Reach maps of its regions, as in :meth:`nimbus.runner.cell.worker.job.Origin`.
        episodes: Files of stored episodes; the first one that shows the table is drawn below.
    """
    box = _box(yields, reach)
    if box is None:
        return None
    return TableMap(
        width=round((box.y[1] - box.y[0]) * _SCALE),
        height=round((box.x[1] - box.x[0]) * _SCALE),
        picture=next(filter(None, readable(partial(_picture, box=box), episodes)), ""),
        cells=[(box.square(*_corner(row.value), CELL, CELL), row) for row in yields.of("cell")],
        beyond=list(_unreachable(reach, box)),
        regions={name: box.square(*region["origin"], *region["size"]) for name, region in reach.items()},
    )


def _box(yields: Yields, reach: Mapping[str, Any]) -> _TableArea | None:
    corners = [_corner(row.value) for row in yields.of("cell")]
    points = [*corners, *((x + CELL, y + CELL) for x, y in corners)]
    for region in reach.values():
        low, size = np.array(region["origin"]), np.array(region["size"])
        points += [tuple(low), tuple(low + size)]
    if not points:
        return None
    low, high = np.min(points, axis=0) - _MARGIN, np.max(points, axis=0) + _MARGIN
    return _TableArea((float(low[0]), float(high[0])), (float(low[1]), float(high[1])))


def _corner(name: str) -> tuple[float, float]:
    _, x, _, y = name.split()
    return float(x), float(y)


def _unreachable(reach: Mapping[str, Any], box: _TableArea) -> Iterator[PictureRect]:
    for region in reach.values():
        side, (size_x, size_y) = region["cell"], region["size"]
        for i, row in enumerate(region["reached"]):
            for j, letter in enumerate(row):
                if letter == "0":
                    x, y = region["origin"][0] + i * side, region["origin"][1] + j * side
                    width, depth = min(side, size_x - i * side), min(side, size_y - j * side)
                    yield box.square(x, y, width, depth)


def _picture(path: Path, box: _TableArea) -> str:
    """Return a JPEG of the table from above, at the start of an episode; empty if no camera sees it."""
    with EpisodeFile(path) as episode:
        for camera in episode.cameras:
            if "depth" not in episode.modalities(camera):
                continue
            poses = episode.rows(f"observations/world_T_camera/{camera}", slice(0, None))
            if np.abs(poses - poses[0]).max() > 1e-6:
                continue
            depth = episode.rows(f"observations/depth/{camera}", 0).astype(float) / 1000.0
            view = _View(episode.array(f"observations/intrinsics/{camera}"), poses[0], depth.shape)
            height = _table_height(view.points(depth), box)
            if height is None:
                continue
            places, seen = view.onto(box, height)
            if seen.mean() < _LEAST_SEEN:
                continue
            pixels = _sampled(episode.rows(f"observations/images/{camera}", 0), places)
            above = np.where(seen[..., None], pixels, 235).astype(np.uint8)
            return jpeg_uri(above, quality=80)
    return ""


@dataclass(frozen=True)
class _View:
    """Pinhole camera at one moment."""

    intrinsics: FloatArray
    world_T_camera: FloatArray
    shape: tuple[int, ...]
    """Height and width [px]."""

    def points(self, depth: FloatArray) -> FloatArray:
        """Return (n, 3) world points of all pixels with depth."""
        rows, columns = np.nonzero(depth > 0)
        far = depth[rows, columns]
        pixels = np.stack([columns + 0.5, rows + 0.5, np.ones(len(rows))])
        rays = np.linalg.solve(self.intrinsics, pixels) * far
        return (self.world_T_camera[:3, :3] @ rays).T + self.world_T_camera[:3, 3]

    def onto(self, box: _TableArea, height: float) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Return positions (…, 2) [px] for every pixel of the table from above, and True for those in the image."""
        x = np.arange(box.x[1], box.x[0], -1 / _SCALE)
        y = np.arange(box.y[1], box.y[0], -1 / _SCALE)
        grid = np.stack(np.broadcast_arrays(x[:, None], y[None, :], np.full((1, 1), height)), axis=-1)
        local = (grid - self.world_T_camera[:3, 3]) @ self.world_T_camera[:3, :3]
        ahead = local[..., 2] > 1e-3
        image = local @ self.intrinsics.T
        places = image[..., :2] / np.where(ahead, image[..., 2], 1.0)[..., None]
        seen = ahead & (places >= 0).all(axis=-1) & (places < self.shape[::-1]).all(axis=-1)
        return np.where(seen[..., None], places, 0.0), seen


def _sampled(pixels: NDArray[np.uint8], places: FloatArray) -> FloatArray:
    """Sample colors bilinearly at positions between pixels, (…, 3)."""
    from scipy.ndimage import map_coordinates

    rows_and_columns = np.moveaxis(places[..., ::-1] - 0.5, -1, 0)
    channels = [map_coordinates(pixels[..., c], rows_and_columns, float, order=1, mode="nearest") for c in range(3)]
    return np.stack(channels, axis=-1)


def _table_height(points: FloatArray, box: _TableArea) -> float | None:
    """Return the most frequent height of the visible points over an area of the table [m]."""
    inside = (points[:, 0] > box.x[0]) & (points[:, 0] < box.x[1])
    inside &= (points[:, 1] > box.y[0]) & (points[:, 1] < box.y[1])
    if inside.sum() < 50:
        return None
    heights, counts = np.unique(np.round(points[inside, 2] / _BIN).astype(int), return_counts=True)
    return float(heights[counts.argmax()]) * _BIN
