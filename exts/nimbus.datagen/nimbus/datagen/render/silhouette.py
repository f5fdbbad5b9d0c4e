"""Outlines of rigid bodies: a few points that have nearly the same convex hull."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.arrays import FloatArray


def outline_points(vertices: NDArray[np.float32], *, count: int = 64) -> FloatArray:
    """Return at most ``count`` vertices (n, 3) near the convex hull: the extremes along spread directions."""
    # The directions lie on a golden spiral, which spreads them evenly over the sphere.
    index = np.arange(count) + 0.5
    polar, turn = np.arccos(1 - 2 * index / count), np.pi * (1 + 5**0.5) * index
    directions = np.stack([np.sin(polar) * np.cos(turn), np.sin(polar) * np.sin(turn), np.cos(polar)])
    return vertices[np.unique(np.argmax(vertices @ directions, axis=0))].astype(np.float64)
