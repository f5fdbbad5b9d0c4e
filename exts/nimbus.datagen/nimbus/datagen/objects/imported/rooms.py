"""Cavities of a container, found by flooding a height field of its upper side with water."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import cast

import numpy as np
from scipy import ndimage

from nimbus.datagen.arrays import BoolArray, FloatArray, IndexArray
from nimbus.datagen.geometry.coverage import cover_pixels, estimate_covered

_CELL, _CELLS = 0.003, 36
"""Side of a cell [m], and smallest number of cells along an object."""
_MOST_COVERED = 50_000_000
"""Number of pairs of a face and a cell below it above which cells are made larger; 200 layers of the largest object."""
_DEPTH, _VOLUME = 0.012, 8e-6
"""Depth [m] and volume [m³] below which a basin is a dent."""
_SMALL_DEPTH, _SMALL_VOLUME = 0.12, 0.02
"""Limits for small objects: fractions of the height and of the volume of the bounding box."""
_FLOORS = (0.02, 0.08, 0.16, 0.26, 0.4, 0.55)
"""Fractions of a basin's depth that are tried as the floor of its box; the volume below the floor is not used."""


@dataclass(frozen=True, kw_only=True)
class Interior:
    """Box inside a container, open at the top."""

    lower: FloatArray
    """(3,) lower corner [m]."""
    upper: FloatArray
    """(3,) upper corner [m], at the height of the rim."""
    volume: float
    """Volume of the water that the cavity holds [m³]."""


def find_rooms(points: FloatArray, faces: IndexArray) -> tuple[Interior, ...]:
    """Find the cavities of a closed surface with z up, the largest first.

    Args:
        points: (n, 3) [m].
        faces: (m, 3) counter-clockwise from outside.
    """
    low, extent = points.min(axis=0), np.ptp(points, axis=0)
    cell = min(_CELL, float(extent[:2].max()) / _CELLS)
    cell, (columns, rows), triangles = _fitting_grid(points, faces, cell)
    seen = cover_pixels(triangles, columns, rows)
    height = np.full(rows * columns, -np.inf)
    height[seen.pixel] = np.einsum("kc,kc->k", seen.weights, points[faces[seen.face], 2])
    height = height.reshape(rows, columns)
    water = _flooded(height)
    is_solid = np.isfinite(height)
    depth = np.zeros_like(height)
    depth[is_solid] = water[is_solid] - height[is_solid]
    least_depth = min(_DEPTH, _SMALL_DEPTH * float(extent[2]))
    least_volume = min(_VOLUME, _SMALL_VOLUME * float(extent.prod()))
    labels, count = cast("tuple[IndexArray, int]", ndimage.label(depth > 0.25 * least_depth))
    rooms = []
    for label in range(1, count + 1):
        basin = labels == label
        volume = float(depth[basin].sum()) * cell**2
        if depth[basin].max() < least_depth or volume < least_volume:
            continue
        (left, top, right, bottom), floor, rim = _largest_box(height, basin, float(water[basin].max()))
        corner = low[:2] - cell
        lower = np.array([*(corner + np.array([left, top]) * cell), floor])
        upper = np.array([*(corner + np.array([right, bottom]) * cell), rim])
        rooms.append(Interior(lower=lower, upper=upper, volume=volume))
    return tuple(sorted(rooms, key=lambda room: -room.volume))


def _fitting_grid(points: FloatArray, faces: IndexArray, cell: float) -> tuple[float, tuple[int, int], FloatArray]:
    """Return a cell's side [m], columns and rows, and triangles (m, 3, 3) on the grid; many layers get larger cells."""
    low, extent = points.min(axis=0), np.ptp(points, axis=0)
    while True:
        columns, rows = (int(np.ceil(side / cell)) + 2 for side in extent[:2])
        on_grid = points.copy()
        on_grid[:, :2] = (points[:, :2] - low[:2]) / cell + 1.0
        triangles = on_grid[faces]
        if columns * rows < 100 or estimate_covered(triangles, columns, rows) <= _MOST_COVERED:
            return cell, (columns, rows), triangles
        cell *= 2


def name_rooms(rooms: FloatArray) -> dict[str, FloatArray]:
    """Name boxes (k, 2, 3), sorted from the largest, by the frame in their opening."""
    return {f"opening_{number}" if number else "opening": room for number, room in enumerate(rooms)}


def _flooded(height: FloatArray) -> FloatArray:
    """Return the water level of each cell when water enters from the border (Barnes et al., Priority-flood, 2014)."""
    rows, columns = height.shape
    water = np.full((rows, columns), np.nan)
    heap: list[tuple[float, int, int]] = []
    is_border = np.zeros(height.shape, dtype=bool)
    is_border[[0, -1]] = is_border[:, [0, -1]] = True
    for row, column in np.argwhere(is_border | ~np.isfinite(height)).tolist():
        # Cells without surface drain: they start the flood with a level of minus infinity.
        water[row, column] = height[row, column]
        heap.append((float(height[row, column]), row, column))
    heapq.heapify(heap)
    while heap:
        level, row, column = heapq.heappop(heap)
        for near_row, near_column in ((row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)):
            inside = 0 <= near_row < rows and 0 <= near_column < columns
            if inside and np.isnan(water[near_row, near_column]):
                water[near_row, near_column] = max(level, float(height[near_row, near_column]))
                heapq.heappush(heap, (water[near_row, near_column], near_row, near_column))
    return water


def _largest_box(height: FloatArray, basin: BoolArray, rim: float) -> tuple[tuple[int, int, int, int], float, float]:
    """Return the largest box over all floors: its first and last columns and rows, its floor and its rim [m]."""
    ground = float(np.quantile(height[basin], 0.02))
    best = (-1.0, (0, 0, 1, 1), ground)
    for share in _FLOORS:
        floor = ground + share * (rim - ground)
        left, top, right, bottom = _widest_rectangle(basin & (height <= floor + 1e-9))
        # The shorter side counts twice, because a square holds more objects than a slit of equal volume.
        worth = min(right - left, bottom - top) * (right - left) * (bottom - top) * (rim - floor)
        if worth > best[0]:
            best = (worth, (left, top, right, bottom), floor)
    return best[1], best[2], rim


def _widest_rectangle(inside: BoolArray) -> tuple[int, int, int, int]:
    """Return left, top, right, bottom of the rectangle of true cells with the largest area times shorter side."""
    rows, columns = inside.shape
    above = np.zeros(columns + 1, dtype=int)
    best, found = 0, (0, 0, 0, 0)
    for row in range(rows):
        above[:columns] = np.where(inside[row], above[:columns] + 1, 0)
        stack: list[int] = []
        # The stack has columns of increasing heights; a lower column closes the rectangles that it cuts off.
        for column in range(columns + 1):
            while stack and above[stack[-1]] >= above[column]:
                tall = int(above[stack.pop()])
                left = stack[-1] + 1 if stack else 0
                wide = column - left
                if min(tall, wide) * tall * wide > best:
                    best, found = min(tall, wide) * tall * wide, (left, row + 1 - tall, column, row + 1)
            stack.append(column)
    return found
