"""Retiming of cuRobo's trajectories: their shape stays the same, and the limits and the period are those of Nimbus."""

from __future__ import annotations

import numpy as np
from scipy.interpolate import CubicSpline

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.plan.timing import TimedPath

_FINER = 4
"""Number of limit checks between two points of a trajectory."""


def retime(
    positions: FloatArray, step: float, *, velocity: FloatArray, acceleration: FloatArray, period: float
) -> TimedPath:
    """Stretch a trajectory from rest to rest until it keeps the limits, and sample it every period.

    Args:
        positions: (H, J), H >= 2.
        step: Time between them [s].
        velocity: (J,) limits [rad/s].
        acceleration: (J,) limits [rad/s^2].
        period: Time between samples [s]; the duration becomes a multiple of it.
    """
    time = step * np.arange(len(positions))
    spline = CubicSpline(time, positions, bc_type="clamped")
    fine = np.linspace(0.0, time[-1], _FINER * len(positions) + 1)
    speed = (np.abs(spline(fine, 1)) / velocity).max()
    push = (np.abs(spline(fine, 2)) / acceleration).max()
    # Stretching time by s divides velocities by s and accelerations by s².
    stretch = max(float(speed), float(np.sqrt(push)), 1e-3)
    count = max(1, int(np.ceil(stretch * time[-1] / period - 1e-9)))
    at = np.linspace(0.0, time[-1], count + 1)
    sampled, rates = spline(at), spline(at, 1) * time[-1] / (count * period)
    sampled[0], sampled[-1] = positions[0], positions[-1]
    rates[0] = rates[-1] = 0.0
    return TimedPath(time=period * np.arange(count + 1, dtype=float), positions=sampled, velocities=rates)
