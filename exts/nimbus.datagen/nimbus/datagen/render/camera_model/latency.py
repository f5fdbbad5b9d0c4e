"""What cameras show that are late: the states of a moment ago, between two that were recorded."""

from __future__ import annotations

import numpy as np

from nimbus.datagen.arrays import FloatArray


def shown_poses(
    positions: FloatArray, wxyz: FloatArray, *, rate: float, latency: float
) -> tuple[FloatArray, FloatArray]:
    """Body poses as they were a little before each step; before the first step everything stood still.

    Args:
        positions: (T, B, 3) [m]
        wxyz: (T, B, 4) unit quaternions.
        rate: Steps a second [Hz].
        latency: [s]; at 0 the arrays themselves are given back.
    """
    if latency <= 0.0 or len(positions) < 2:
        return positions, wxyz
    late = np.maximum(np.arange(len(positions)) - latency * rate, 0.0)
    before = np.floor(late).astype(int)
    after = np.minimum(before + 1, len(positions) - 1)
    share = (late - before)[:, None, None]
    one, other = wxyz[before], wxyz[after]
    other = np.where(np.sum(one * other, axis=-1, keepdims=True) < 0.0, -other, other)
    turned = (1.0 - share) * one + share * other
    turned /= np.linalg.norm(turned, axis=-1, keepdims=True)
    return (1.0 - share) * positions[before] + share * positions[after], turned
