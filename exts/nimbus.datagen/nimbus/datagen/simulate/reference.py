"""The smooth path from one command to the next, along which a simulator leads its joints."""

from __future__ import annotations

from nimbus.datagen.arrays import FloatArray


def smooth_reference(
    first: FloatArray, second: FloatArray, target: FloatArray, u: float, period: float
) -> tuple[FloatArray, FloatArray]:
    """Position and velocity on a quadratic B-spline through the last three commands.

    Args:
        first: (J,) the command before the last one [rad, m].
        second: The last one.
        target: This one.
        u: Share of the period that is over, 0 to 1.
        period: [s] between two commands.
    """
    position = 0.5 * ((1 - u) ** 2 * first + (1 + 2 * u - 2 * u * u) * second + u * u * target)
    velocity = ((u - 1) * first + (1 - 2 * u) * second + u * target) / period
    return position, velocity
