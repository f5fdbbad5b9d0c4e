"""Light samples inside of solids, and the visible samples that replace them.

Where two walls overlap at a corner, the ends of their faces are inside of the other wall. A sample there sees that wall
from within, so it would carry the daylight of the outer faces into the room: a bright line along the corner.
"""

from __future__ import annotations

import numpy as np

from nimbus.datagen.arrays import AnyArray, BoolArray, Float32Array, FloatArray, IntArray

_BEHIND = 0.5
"""Fraction of rays that hit faces from behind, above which a sample may be inside of a solid."""
_OPEN = 0.02
"""Largest fraction of sky around a sample inside of a solid; rays may pass between two faces."""
_REACH = 0.6
"""Largest distance of a replacement [m]; the middle of a face that is hidden altogether is never seen."""
_APART = 10.0
"""Distance that a unit of difference in normal, plane or group counts as [m]; more than the reach."""


def hidden_samples(behind: Float32Array, lit: Float32Array, sky: FloatArray) -> BoolArray:
    """Return (S,) True for samples inside of solids.

    Args:
        behind: (S,) fraction of rays that hit a face from behind.
        lit: (S, L) light of the lamps.
        sky: (S, P) fraction of rays that reach each part of the sky.
    """
    return (behind > _BEHIND) & (lit.sum(axis=1) <= 0.0) & (sky.sum(axis=1) < _OPEN)


def replacements(hidden: BoolArray, points: Float32Array, normals: Float32Array, groups: AnyArray) -> IntArray:
    """Return (S,) the sample that each sample stands for: itself, or the nearest visible one in its plane and group.

    A hidden sample without a visible one within reach stands for itself.

    Args:
        hidden: (S,) True for samples inside of solids.
        points: (S, 3) [m].
        normals: (S, 3) unit normals.
        groups: (S,) group of surfaces.
    """
    from scipy.spatial import KDTree

    found = np.arange(len(points))
    where, others = np.flatnonzero(hidden), np.flatnonzero(~hidden)
    if not len(where) or not len(others):
        return found
    # A nearest neighbor among these coordinates is near in space and equal in all else.
    planes = np.einsum("sd,sd->s", points, normals)
    apart = np.column_stack([normals, planes, groups]).astype(float) * _APART
    place = np.column_stack([points.astype(float), apart])
    distance, nearest = KDTree(place[others]).query(place[where], distance_upper_bound=_REACH)
    within = np.isfinite(distance)
    found[where[within]] = others[np.asarray(nearest)[within]]
    return found
