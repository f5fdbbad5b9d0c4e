"""Noise on an arm's execution as it approaches an object; the recorded commands stay free of it.

The arm leaves its path while the recorded command leads back to it, which teaches a policy to recover (DART: Laskey et
al. 2017, "Noise injection for robust imitation learning").
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.geometry.mujoco_library import mujoco
from nimbus.datagen.plan.scene import PlanningScene

NOISY_PHASES = ("approach", "reach")
"""Phases before contact, in which noise cannot spoil a grasp."""
_PERSISTENCE = 0.8
"""Fraction of a row's noise kept in the next row, so that the arm drifts instead of shaking."""
_QUIET_ROWS = 2
"""Rows without noise at the end of a motion, because the simulator interpolates over three commands."""
_FADING = 0.25
"""Largest change of the fraction of noise between rows, so that the noise fades in and out."""
_SHARES = (1.0, 0.5, 0.25)
"""Fractions of the noise, tried in this order until the arm stays clear of obstacles."""
_CLEARANCE = 0.02
"""Clearance that noise keeps [m]; if the plan itself is closer, noise may reduce its distance by ``_SLACK``."""
_SLACK = 0.001
"""Reduction of a planned distance that noise may cause [m]."""


def draw_execution_noise(
    rng: np.random.Generator, scene: PlanningScene, postures: FloatArray, *, scale: FloatArray
) -> FloatArray:
    """Draw the noise on the commands of one motion, zero at its start and end.

    Args:
        rng: The motion's own stream.
        scene: Planning scene in its current state.
        postures: (N, J) commands of the motion [rad or m].
        scale: (J,) standard deviation for each joint [rad or m]; 0 for a joint without noise.

    Returns:
        (N, J) [rad or m].
    """
    # A first-order autoregression; the factor keeps the standard deviation of each row at the given scale.
    draws = rng.normal(size=postures.shape) * scale * np.sqrt(1 - _PERSISTENCE**2)
    noise = np.zeros(postures.shape)
    for row, draw in enumerate(draws):
        noise[row] = draw + (_PERSISTENCE * noise[row - 1] if row else 0.0)
    with scene.nearer(_CLEARANCE):
        shares = [_largest_share(scene, *pair) for pair in zip(postures, noise, strict=True)]
    shares[-_QUIET_ROWS:] = [0.0] * min(_QUIET_ROWS, len(shares))
    return noise * _limit_slope(shares)[:, None]


def _largest_share(scene: PlanningScene, posture: FloatArray, noise: FloatArray) -> float:
    """Return the largest fraction of the noise that keeps limits and clearances; 0 if none does."""
    planned = scene.contacts(posture)
    for share in _SHARES:
        noisy = posture + share * noise
        if scene.within_limits(noisy) and all(
            distance >= planned.get(pair, np.inf) - _SLACK for pair, distance in scene.contacts(noisy).items()
        ):
            return share
    return 0.0


def _limit_slope(shares: Sequence[float]) -> FloatArray:
    """Return fractions (N,), as large as the given ones allow, that begin and end at 0 and change slowly."""
    found = np.array([0.0, *shares, 0.0])
    # The forward pass limits the increase from row to row, the backward pass the decrease.
    for row in range(1, len(found)):
        found[row] = min(found[row], found[row - 1] + _FADING)
    for row in range(len(found) - 2, -1, -1):
        found[row] = min(found[row], found[row + 1] + _FADING)
    return found[1:-1]


def noise_scale(model: mujoco.MjModel, joints: Sequence[str], *, sigma: float) -> FloatArray:
    """Return the (J,) standard deviation of the noise of each joint [rad]; 0 for prismatic joints."""
    hinge = mujoco.mjtJoint.mjJNT_HINGE
    return np.array([sigma if model.joint(name).type[0] == hinge else 0.0 for name in joints])
