"""Order of points along a space-filling curve, so that nearby points are adjacent in memory."""

from __future__ import annotations

import numpy as np

from nimbus.datagen.arrays import Float32Array, IntArray

_BITS = 21
"""Binary logarithm of the number of cells along an axis; the bits of three cell indices fit into 64 bits."""
_SPREAD = (
    (32, 0x1F00000000FFFF),
    (16, 0x1F0000FF0000FF),
    (8, 0x100F00F00F00F00F),
    (4, 0x10C30C30C30C30C3),
    (2, 0x1249249249249249),
)
"""Shifts and masks that insert two empty bits between the bits of a number."""


def curve_order(positions: Float32Array) -> IntArray:
    """Sort points by Morton code (Morton, 1966); the sort is stable.

    Args:
        positions: (N, 3) points, in any unit.

    Returns:
        (N,) indices of the points in the order of the curve.
    """
    lower = positions.min(axis=0)
    # All axes have the same scale, so that cells are cubes and neighbors on the curve are near each other.
    side = max(float((positions.max(axis=0) - lower).max()), 1e-9)
    code = np.zeros(len(positions), dtype=np.uint64)
    for axis in range(3):
        cells = (positions[:, axis].astype(float) - lower[axis]) * (((1 << _BITS) - 1) / side)
        spread = cells.astype(np.uint64)
        for shift, mask in _SPREAD:
            spread = (spread | (spread << np.uint64(shift))) & np.uint64(mask)
        code |= spread << np.uint64(axis)
    return np.argsort(code, kind="stable")
