"""Timing of demonstrated postures: at the demonstrated speed, or slower where velocity limits require it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from nimbus.datagen.arrays import FloatArray

_SPEED = 0.5
"""Fraction of the velocity limits that a demonstrated motion may use."""


def time_postures(
    paths: Sequence[FloatArray], *, rate: float, period: float, limits: Sequence[ArrayLike]
) -> list[FloatArray]:
    """Sample the joint paths of several arms in step, once a record period.

    Args:
        paths: (N, J) postures of each arm, row by row at ``rate`` [rad or m].
        rate: Rows per second of the demonstration [Hz].
        period: Record period [s].
        limits: (J,) velocity limits of each arm [rad/s or m/s].

    Returns:
        (M, J) commands of each arm; the first row is one period after the first posture, and the last row is the last
        posture.
    """
    durations = np.full(len(paths[0]) - 1, 1.0 / rate)
    for path, limit in zip(paths, limits, strict=True):
        slowest = (np.abs(np.diff(path, axis=0)) / (_SPEED * np.asarray(limit))).max(axis=1, initial=0.0)
        durations = np.maximum(durations, slowest)
    times = np.concatenate([[0.0], np.cumsum(durations)])
    count = max(1, int(np.ceil(times[-1] / period - 1e-9)))
    moments = np.linspace(0.0, times[-1], count + 1)[1:]
    return [np.stack([np.interp(moments, times, joint) for joint in path.T], axis=1) for path in paths]
