"""Speed and acceleration of joints that share one pace, so that the tool stays on its path."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from nimbus.datagen.arrays import FloatArray

_THERE = 1e-9
"""Distance from its target within which a joint does not limit the others [rad or m]."""


_BRAKING = 0.5
"""Part of its largest acceleration with which a joint plans to brake. The rest keeps the tool on its path, where joints
change their speeds faster."""


class JointPace:
    """Limits of the steps that joints make, one period after the other.

    Args:
        velocity: (J,) largest speeds [rad/s or m/s].
        acceleration: (J,) largest accelerations [rad/s² or m/s²].
        period: Length of a period [s].
    """

    def __init__(self, velocity: ArrayLike, acceleration: ArrayLike, period: float) -> None:
        self.longest: FloatArray = np.asarray(velocity, dtype=float) * period
        """(J,) largest steps [rad or m]."""
        self._acceleration, self._period = np.asarray(acceleration, dtype=float), period
        self.before: FloatArray = np.zeros(len(self.longest))
        """(J,) step of the last period [rad or m]."""

    def share(self, way: FloatArray, *, brakes: bool) -> float:
        """Return the part, 0 to 1, of the way (J,) to a target [rad or m] that all joints can make in this period.

        Args:
            way: (J,) distances to the target, with sign.
            brakes: True to remain slow enough to stop at the target.
        """
        far = np.abs(way) > _THERE
        if not far.any():
            return 1.0
        longest = self.longest
        if brakes:  # v² = 2 a s: a joint that is faster than this cannot stop at its target
            longest = np.minimum(longest, np.sqrt(2 * _BRAKING * self._acceleration * np.abs(way)) * self._period)
        share = min(1.0, float(np.min(longest[far] / np.abs(way[far]))))
        low, high = self._range()
        ends = np.sort(np.array([low[far], high[far]]) / way[far], axis=0)
        least, most = float(np.max(ends[0])), float(np.min(ends[1]))
        # Without a common pace, the acceleration of each joint is limited by itself.
        return float(np.clip(share, max(least, 0.0), min(most, 1.0))) if max(least, 0.0) <= min(most, 1.0) else share

    def limit(self, step: FloatArray) -> FloatArray:
        """Return a step (J,) [rad or m] with limited acceleration."""
        return np.clip(step, *self._range())

    def _range(self) -> tuple[FloatArray, FloatArray]:
        change = self._acceleration * self._period**2
        return self.before - change, self.before + change
