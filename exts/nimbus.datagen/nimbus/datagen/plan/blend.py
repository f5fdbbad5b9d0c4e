"""Polygonal joint path with rounded corners: smooth, and close to the polygon that was checked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.plan.path import IsFree

NEGLIGIBLE = 2e-3
"""Corner cut below which no further collision check is needed [rad]."""


class BlendedPath:
    """Straight lines joined by smooth arcs, as a function of the length along the polygon.

    An arc replaces the last ``radius`` of the edge before a corner and the first ``radius`` of the edge after it. Its
    derivative changes from one edge's direction to the other's by a smooth step, so that the second derivative is
    continuous.

    Args:
        waypoints: (P, J) corners, adjacent ones distinct.
        radii: (P,) length of both edges that each corner's arc replaces [rad]; 0 at both ends.
    """

    def __init__(self, waypoints: FloatArray, radii: FloatArray) -> None:
        edges = np.diff(waypoints, axis=0)
        lengths = np.linalg.norm(edges, axis=1)
        self.corners: FloatArray = np.concatenate([[0.0], np.cumsum(lengths)])
        self._waypoints, self._radii = waypoints, radii
        self._directions = edges / lengths[:, None]

    @property
    def length(self) -> float:
        """Length of the polygon [rad]."""
        return float(self.corners[-1])

    @property
    def breaks(self) -> FloatArray:
        """Lengths at which lines and arcs meet, ends included [rad]."""
        inner = np.concatenate([self.corners - self._radii, self.corners + self._radii])
        return np.unique(np.clip(inner, 0.0, self.length))

    def __call__(self, s: NDArray[np.float64], order: int = 0) -> FloatArray:
        """Return the postures (N, J), or their first or second derivative, at lengths ``s`` (N,) along the polygon."""
        edge = np.clip(np.searchsorted(self.corners, s, side="right") - 1, 0, len(self._directions) - 1)
        value = self._line(s, edge, order)
        for before in (edge - 1, edge):
            inside = np.abs(s - self.corners[before + 1]) < self._radii[before + 1]
            value[inside] = self._arc(s[inside], before[inside], order)
        return value

    def _line(self, s: FloatArray, edge: NDArray[np.int64], order: int) -> FloatArray:
        direction = self._directions[edge]
        if order == 0:
            return self._waypoints[edge] + (s - self.corners[edge])[:, None] * direction
        return direction.copy() if order == 1 else np.zeros_like(direction)

    def _arc(self, s: FloatArray, before: NDArray[np.int64], order: int) -> FloatArray:
        """Evaluate the corner after edge ``before``."""
        corner, width = before + 1, 2 * self._radii[before + 1][:, None]
        into, turn = self._directions[before], self._directions[before + 1] - self._directions[before]
        t = (s - self.corners[corner])[:, None] / width + 0.5
        if order == 0:
            return self._waypoints[corner] + (t - 0.5) * width * into + width * (t**3 - t**4 / 2) * turn
        return into + (3 * t**2 - 2 * t**3) * turn if order == 1 else 6 * t * (1 - t) / width * turn


def blend_corners(waypoints: FloatArray, is_free: IsFree, *, radii: Sequence[float] = (0.25, 0.1, 0.03)) -> BlendedPath:
    """Round every corner by the largest radius [rad] that keeps it free; the smallest radius is not checked."""
    waypoints = waypoints[np.concatenate([[True], np.abs(np.diff(waypoints, axis=0)).max(axis=1) > 1e-6])]
    edges = np.diff(waypoints, axis=0)
    lengths = np.linalg.norm(edges, axis=1)
    turns = np.linalg.norm(np.diff(edges / lengths[:, None], axis=0), axis=1)
    chosen = np.zeros(len(waypoints))
    for index, turn in enumerate(turns):
        room = 0.5 * min(lengths[index], lengths[index + 1])
        for radius in radii:
            chosen[index + 1] = min(radius, room)
            if _corner_is_free(waypoints[index : index + 3], chosen[index + 1], turn, is_free):
                break
    return BlendedPath(waypoints, chosen)


def _corner_is_free(corner: FloatArray, radius: float, turn: float, is_free: IsFree) -> bool:
    # The distance of the arc's middle from the corner is 3/16 of the replaced length times the change of direction.
    if 0.19 * radius * turn < NEGLIGIBLE:
        return True
    edges = np.diff(corner, axis=0)
    arc = BlendedPath(corner, np.array([0.0, radius, 0.0]))
    middle = np.linalg.norm(edges[0])
    count = max(3, int(np.ceil(2 * radius / 0.03)))
    return all(map(is_free, arc(middle + radius * np.linspace(-1, 1, count + 1)[1:-1])))
