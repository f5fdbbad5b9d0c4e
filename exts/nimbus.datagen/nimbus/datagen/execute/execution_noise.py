"""Noise on what an arm executes on its way to a thing; what is recorded as commanded stays clean.

An arm that is pushed off its path while the recorded command leads back to it shows a learner how to come back (DART:
Laskey et al. 2017, "Noise injection for robust imitation learning").
"""

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np

from nimbus.datagen.arrays import FloatArray

NOISY_PHASES = ("approach", "reach")
"""Phases on the way to a thing. In the others contact is made or kept, and noise would cost it."""
_PERSISTENCE = 0.8
"""Share of a row's noise that the next row keeps: the arm drifts away and does not shake."""
_FADING_ROWS = 6
"""Rows at the end of a motion in which the noise fades: the arm arrives where its plan ends."""
_QUIET_ROWS = 2
"""The last of them have none, as the simulator interpolates over three commands."""


def draw_execution_noise(
    rng: np.random.Generator, *, rows: int, scale: FloatArray, lower: FloatArray, upper: FloatArray
) -> FloatArray:
    """Draw what is added to the commands of one motion, from nothing at its start to nothing at its end.

    Args:
        rng: The motion's own stream.
        rows: N, commands of the motion.
        scale: (J,) standard deviation of each joint [rad or m]; 0 for a joint without noise.
        lower: (N, J) least noise that keeps the joints within their limits [rad or m].
        upper: (N, J) largest one.

    Returns:
        (N, J) [rad or m].
    """
    draws = rng.normal(size=(rows, len(scale))) * scale * np.sqrt(1 - _PERSISTENCE**2)
    noise, state = np.zeros((rows, len(scale))), np.zeros(len(scale))
    for row in range(rows):
        state = _PERSISTENCE * state + draws[row]
        noise[row] = state
    left = np.arange(rows, 0, -1) - _QUIET_ROWS
    fade = np.clip(left / (_FADING_ROWS - _QUIET_ROWS), 0.0, 1.0)
    return np.clip(noise * fade[:, None], np.minimum(lower, 0.0), np.maximum(upper, 0.0))


def noise_scale(model: mujoco.MjModel, joints: Sequence[str], *, sigma: float) -> FloatArray:
    """(J,) standard deviation of the noise of each joint [rad]; a joint that slides has none."""
    hinge = mujoco.mjtJoint.mjJNT_HINGE
    return np.array([sigma if model.joint(name).type[0] == hinge else 0.0 for name in joints])
