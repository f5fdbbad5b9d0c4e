"""Symmetry of an imported solid: rotations about an axis that leave it unchanged."""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.spatial import KDTree
from scipy.spatial.transform import Rotation

from nimbus.datagen.arrays import FloatArray, IndexArray
from nimbus.datagen.geometry.coverage import sample_surface

Symmetry = Literal["none", "revolution", "box"]

_SAMPLES, _TURNED = 20_000, 1500
"""Number of surface samples, and of those that are rotated and compared with all samples."""
_OFF = 0.02
"""Largest distance of a rotated sample to its nearest sample, as a fraction of the longest side.

Samples of a ball have about this distance.
"""
_FITTING = 0.97
"""Fraction of the samples that must match; even a small handle or the edge of a label affects more than the remaining
ones."""
_ANGLES = np.deg2rad([23.0, 67.0, 90.0, 131.0, 180.0])
"""Angles for testing round objects; regular polygons do not map onto themselves at all of them."""


def find_symmetry(points: FloatArray, faces: IndexArray) -> Symmetry:
    """Find the symmetry of a surface with z up: any rotation about the vertical, half turns about all axes, or none.

    Args:
        points: (n, 3) [m].
        faces: (m, 3) triangles of the points.
    """
    if all(share >= _FITTING for share in turned_shares(points, faces, 2, _ANGLES)):
        return "revolution"
    half = np.array([np.pi])
    return "box" if all(turned_shares(points, faces, axis, half)[0] >= _FITTING for axis in range(3)) else "none"


def turned_shares(points: FloatArray, faces: IndexArray, axis: int, angles: FloatArray) -> list[float]:
    """Return, for each rotation about a central axis [rad], the fraction of a surface that maps onto itself."""
    surface = sample_surface(points[faces], _SAMPLES)[0]
    middle = (points.min(axis=0) + points.max(axis=0)) / 2
    tree, reach = KDTree(surface), _OFF * float(np.ptp(points, axis=0).max())
    few = surface[:: _SAMPLES // _TURNED] - middle
    shares = []
    for angle in angles:
        turned = Rotation.from_rotvec(angle * np.eye(3)[axis]).apply(few) + middle
        shares.append(float((tree.query(turned)[0] < reach).mean()))
    return shares
