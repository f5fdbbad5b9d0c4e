"""Number of physics steps per record period, and the smooth reference between commands."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.errors import InputError

_MOST_STEPS = 24_000
"""Largest number of physics steps in a record period, which is reached with one record in ten seconds."""


def smooth_reference(
    first: FloatArray, second: FloatArray, target: FloatArray, *, steps: int, period: float
) -> tuple[FloatArray, FloatArray]:
    """Return positions and velocities on the uniform quadratic B-spline of the last three commands.

    Args:
        first: (J,) the command before the last one [rad, m].
        second: (J,) the last command.
        target: (J,) this command.
        steps: Steps of physics in the period, S.
        period: Time between two commands [s].

    Returns:
        Positions (S, J) [rad, m] and velocities (S, J) at the end of each step; the last position is midway between
        ``second`` and ``target``.
    """
    (a, b, c), (d, e, f) = _weights(steps)
    position = 0.5 * (a * first + b * second + c * target)
    velocity = (d * first + e * second + f * target) / period
    return position, velocity


@lru_cache(maxsize=8)
def _weights(steps: int) -> tuple[FloatArray, FloatArray]:
    """Return the weights of the three commands in position and velocity, each (3, S, 1).

    They are computed in Python, because NumPy's square differs in the last bit.
    """
    # These are the parameters u of the spline at the end of each step; velocities are the derivatives of the positions.
    shares = [(step + 1) / steps for step in range(steps)]
    position = [((1 - u) ** 2, 1 + 2 * u - 2 * u * u, u * u) for u in shares]
    velocity = [(u - 1, 1 - 2 * u, u) for u in shares]
    return np.transpose(position)[:, :, None], np.transpose(velocity)[:, :, None]


def steps_per_period(step_rate: float, rate: float) -> int:
    """Return the number of physics steps in a record period.

    Args:
        step_rate: Rate of physics [Hz].
        rate: Rate of records [Hz].

    Raises:
        InputError: The number is not whole, or too large, as may be the case for a rate from an untrusted file.
    """
    steps = round(min(step_rate / rate, _MOST_STEPS + 1))
    if steps > _MOST_STEPS or abs(steps * rate - step_rate) > 1e-9:
        what = f"{rate:g} Hz does not divide the {step_rate:g} Hz of physics into 1 to {_MOST_STEPS:,} whole steps"
        raise InputError(what, where="rate", instead="use 10, 15, 20, 30 or 60 Hz")
    return steps
