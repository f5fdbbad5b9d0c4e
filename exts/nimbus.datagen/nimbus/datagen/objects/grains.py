"""Grains: equal small spheres, such as peas, that are one object and fill a container in layers at the start."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.objects.shapes.ball import even_points

_GAP = 0.03
"""Initial distance between neighboring grains, as a fraction of their diameter; they settle from there."""


@dataclass(frozen=True, kw_only=True)
class GrainHeap:
    """Grains in an upright column of hexagonal layers."""

    count: int
    """Number of grains."""
    radius: float
    """Radius of each grain [m]."""
    width: float
    """Largest diameter of the column [m]; a column is at least three grains wide."""

    def points(self) -> FloatArray:
        """Return the centers of the grains at the start, (count, 3) in the object's frame [m]: layer after layer."""
        pitch = 2 * self.radius * (1 + _GAP)
        layers = [_layer(self.width / 2 - self.radius, pitch, odd=bool(odd)) for odd in range(2)]
        rows: list[FloatArray] = []
        missing, height = self.count, 0.0
        while missing > 0:
            flat = layers[len(rows) % 2][:missing]
            rows.append(np.column_stack([flat, np.full(len(flat), height)]))
            missing, height = missing - len(flat), height + pitch * np.sqrt(2 / 3)
        points = np.vstack(rows)
        return points - (points.min(axis=0) + points.max(axis=0)) / 2

    def skin(self) -> tuple[list[int], FloatArray]:
        """Return the grain (V,) of each vertex of the surface, and its offset (V, 3) from the grain's center [m]."""
        corners = even_points()
        owners = np.repeat(np.arange(self.count), len(corners)).tolist()
        return owners, np.tile(self.radius * corners, (self.count, 1))


def _layer(reach: float, pitch: float, *, odd: bool) -> FloatArray:
    """Return the centers (n, 2) of a hexagonal layer within a circle [m], from the middle outward."""
    reach = max(reach, pitch)
    most = int(np.ceil(2 * reach / pitch)) + 1
    i, j = (axis.ravel() for axis in np.meshgrid(*[np.arange(-most, most + 1)] * 2, indexing="ij"))
    points = pitch * np.column_stack([i + j / 2, j * np.sqrt(3) / 2])
    if odd:
        points += pitch * np.array([0.5, 0.5 / np.sqrt(3)])
    distance = np.round(np.linalg.norm(points, axis=1), 9)
    order = np.lexsort((points[:, 1], points[:, 0], distance))
    return points[order][distance[order] <= reach]
