"""Level faces of an imported solid that can support other objects."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from nimbus.datagen.arrays import FloatArray, IndexArray

_LEVEL = np.cos(np.deg2rad(4.0))
"""Smallest cosine between the normal of a level face and the vertical."""
_SAME_HEIGHT = 0.002
"""Largest difference in height between neighboring faces of one support [m]; scans are bumpy."""
_AREA = 30e-4
"""Smallest area of a support [m²]."""


@dataclass(frozen=True, kw_only=True)
class Support:
    """Level supporting area of an object with z up."""

    height: float
    """Height of the support [m]."""
    lower: FloatArray
    """(2,) lower corner of its bounding rectangle [m]."""
    upper: FloatArray
    """(2,) upper corner of its bounding rectangle [m]."""
    area: float
    """Area of the support [m²]."""


def find_supports(points: FloatArray, faces: IndexArray) -> tuple[Support, ...]:
    """Find the level areas of at least 30 cm² of a closed surface with z up, the highest first.

    Args:
        points: (n, 3) [m].
        faces: (m, 3) counter-clockwise from outside.
    """
    corners = points[faces]
    cross = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    double = np.linalg.norm(cross, axis=1)
    level = faces[cross[:, 2] > _LEVEL * np.maximum(double, 1e-18)]
    if not len(level):
        return ()
    area = double[cross[:, 2] > _LEVEL * np.maximum(double, 1e-18)] / 2
    height = points[level][..., 2].mean(axis=1)
    sides = np.sort(np.vstack([level[:, [0, 1]], level[:, [1, 2]], level[:, [2, 0]]]), axis=1)
    owner = np.tile(np.arange(len(level)), 3)
    order = np.lexsort(sides.T)
    follows = np.flatnonzero((sides[order][1:] == sides[order][:-1]).all(axis=1))
    one, other = owner[order[follows]], owner[order[follows + 1]]
    near = np.abs(height[one] - height[other]) < _SAME_HEIGHT
    graph = coo_array((np.ones(int(near.sum())), (one[near], other[near])), shape=(len(level), len(level)))
    label = connected_components(graph, directed=False)[1]
    found = []
    for name in np.unique(label):
        mine = label == name
        total = float(area[mine].sum())
        if total >= _AREA:
            flat = points[level[mine]].reshape(-1, 3)[:, :2]
            middle = float(np.average(height[mine], weights=area[mine]))
            found.append(Support(height=middle, lower=flat.min(axis=0), upper=flat.max(axis=0), area=total))
    return tuple(sorted(found, key=lambda support: -support.height))
