"""Noise on what an arm executes on its way to a thing; what is recorded as commanded stays clean.

An arm that is off its path while the recorded command leads back to it shows a learner how to come back (DART: Laskey
et al. 2017, "Noise injection for robust imitation learning").
"""

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.plan.scene import PlanningScene

NOISY_PHASES = ("approach", "reach")
"""Phases on the way to a thing. In the others contact is made or kept, and noise would cost it."""
_PERSISTENCE = 0.8
"""Share of a row's noise that the next row keeps: the arm drifts away and does not shake."""
_QUIET_ROWS = 2
"""Rows at the end of a motion without noise, as the simulator interpolates over three commands."""
_FADING = 0.25
"""The noise grows from nothing and fades to nothing by this share a row: it ends over the last six rows."""
_SHARES = (1.0, 0.5, 0.25)
"""Shares of the noise that are tried where the whole would come near to something."""
_CLEARANCE = 0.02
"""[m] Distance that noise keeps between things; what the plan brings nearer it may bring nearer by ``_SLACK``."""
_SLACK = 0.001
"""[m]"""


def draw_execution_noise(
    rng: np.random.Generator, scene: PlanningScene, postures: FloatArray, *, scale: FloatArray
) -> FloatArray:
    """Draw what is added to the commands of one motion, from nothing at its start to nothing at its end.

    Args:
        rng: The motion's own stream.
        scene: With everything where it is.
        postures: (N, J) commands of the motion [rad or m].
        scale: (J,) standard deviation of each joint [rad or m]; 0 for a joint without noise.

    Returns:
        (N, J) [rad or m].
    """
    draws = rng.normal(size=postures.shape) * scale * np.sqrt(1 - _PERSISTENCE**2)
    noise = np.zeros(postures.shape)
    for row, draw in enumerate(draws):
        noise[row] = draw + (_PERSISTENCE * noise[row - 1] if row else 0.0)
    with scene.nearer(_CLEARANCE):
        shares = [_largest_share(scene, *pair) for pair in zip(postures, noise, strict=True)]
    shares[-_QUIET_ROWS:] = [0.0] * min(_QUIET_ROWS, len(shares))
    return noise * _limit_slope(shares)[:, None]


def _largest_share(scene: PlanningScene, posture: FloatArray, noise: FloatArray) -> float:
    """Share of the noise with which the arm is within its limits and keeps its distances; 0 where there is none."""
    planned = scene.contacts(posture)
    for share in _SHARES:
        noisy = posture + share * noise
        if scene.within_limits(noisy) and all(
            distance >= planned.get(pair, np.inf) - _SLACK for pair, distance in scene.contacts(noisy).items()
        ):
            return share
    return 0.0


def _limit_slope(shares: Sequence[float]) -> FloatArray:
    """(N,) the largest shares below those given that begin and end at 0 and change slowly from row to row."""
    found = np.array([0.0, *shares, 0.0])
    for row in range(1, len(found)):
        found[row] = min(found[row], found[row - 1] + _FADING)
    for row in range(len(found) - 2, -1, -1):
        found[row] = min(found[row], found[row + 1] + _FADING)
    return found[1:-1]


def noise_scale(model: mujoco.MjModel, joints: Sequence[str], *, sigma: float) -> FloatArray:
    """(J,) standard deviation of the noise of each joint [rad]; a joint that slides has none."""
    hinge = mujoco.mjtJoint.mjJNT_HINGE
    return np.array([sigma if model.joint(name).type[0] == hinge else 0.0 for name in joints])
