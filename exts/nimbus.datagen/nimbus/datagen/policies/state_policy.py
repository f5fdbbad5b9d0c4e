"""A small policy on states: a multilayer perceptron from the scene in numbers to a chunk of actions; NumPy alone.

:mod:`nimbus.datagen.policies.state_training` trains one. Its folder holds ``weights.npz``, ``policy.json`` and
``policy.py``, so that ``nimbus evaluate TASK --policy FOLDER`` takes it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.bounded import read_typed
from nimbus.datagen.policies.perceptron import predict
from nimbus.datagen.policies.policy import Needs, Policy, PolicyObservation, PolicyTask

WEIGHTS, SETTINGS, ENTRY = "weights.npz", "policy.json", "policy.py"
ENTRY_TEXT = '''"""The policy of this folder, for nimbus evaluate --policy."""

from pathlib import Path

from nimbus.datagen.policies.state_policy import StatePolicy


def make_policy():
    """Load the weights that lie beside this file."""
    return StatePolicy(Path(__file__).parent)
'''
"""Text of ``policy.py``."""
_SLOW = 0.3
"""Share of a velocity [rad/s] that counts as much as a position [rad]."""


@dataclass(frozen=True, kw_only=True)
class StatePolicySettings:
    """Conventions that a trained policy expects."""

    task: str
    robot: str
    rate: float
    joint_names: tuple[str, ...]
    action_names: tuple[str, ...]
    feature_names: tuple[str, ...]
    horizon: int
    """Actions of an answer."""
    limit: int
    """Steps that an episode may take: twice the longest demonstration."""
    dataset: str = ""
    """Hash of the demonstrations (D0)."""


def state_vector(state: FloatArray, velocity: FloatArray, scene: FloatArray, names: tuple[str, ...]) -> FloatArray:
    """Input of the network: joints, speeds, the scene, and each object as the first tool sees it.

    Args:
        state: (T, J) joint positions [rad or m].
        velocity: (T, J)
        scene: (T, F) values of :class:`~nimbus.datagen.policies.features.SceneFeatures`.
        names: (F,) of its entries.

    Returns:
        (T, D)
    """
    place = {name: index for index, name in enumerate(names)}
    tool = next(name.removesuffix(".x") for name in names if name.endswith(".tool.x"))
    position = _columns(scene, place, tool, "x", "y", "z")
    one = _columns(scene, place, tool, "r11", "r21", "r31")
    two = _columns(scene, place, tool, "r12", "r22", "r32")
    axes = np.stack([one, two, np.cross(one, two)], axis=1)  # rows are the tool's axes in the world
    objects = [name.removesuffix(".present") for name in names if name.endswith(".present")]
    seen = [np.einsum("tij,tj->ti", axes, _columns(scene, place, name, "x", "y", "z") - position) for name in objects]
    return np.concatenate([state, _SLOW * velocity, scene, *seen], axis=1)


def _columns(scene: FloatArray, place: dict[str, int], name: str, *entries: str) -> FloatArray:
    return scene[:, [place[f"{name}.{entry}"] for entry in entries]]


class StatePolicy(Policy):
    """Runs a trained network.

    Args:
        folder: Holds the weights and the settings.

    Raises:
        InputError: They are not there, or damaged.
    """

    needs = Needs(cameras=(), environment_state=True)

    def __init__(self, folder: Path) -> None:
        path = folder / WEIGHTS
        self._settings = read_typed(StatePolicySettings, folder / SETTINGS)
        try:
            with np.load(path, allow_pickle=False) as held:
                self._weights = {name: np.asarray(held[name], dtype=float) for name in held.files}
            self.identity = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        except (OSError, ValueError) as error:
            raise InputError(f"cannot be read: {error}", where=str(path), instead="train the policy again") from None
        self.limit, self.horizon = self._settings.limit, self._settings.horizon

    def begin_task(self, task: PolicyTask) -> None:
        """Compare the conventions.

        Raises:
            InputError: The task has other names, another robot or rate than the demonstrations had.
        """
        mine = self._settings
        for name in ("robot", "rate", "joint_names", "action_names", "feature_names"):
            expected, found = getattr(mine, name), getattr(task, name)
            if expected != found:
                what = f"the policy was trained with another {name.replace('_', ' ')}: {_shown(expected, found)}"
                raise InputError(what, where="--policy", instead=f"evaluate it on {mine.task}")

    def act(self, observation: PolicyObservation) -> NDArray[np.floating]:
        """Compute the next actions (K, A) [rad or m]."""
        seen = observation
        names = self._settings.feature_names
        x = state_vector(seen.state[None], seen.velocity[None], seen.environment_state[None], names)
        return predict(self._weights, x).reshape(self._settings.horizon, -1)


def _shown(expected: object, found: object) -> str:
    if isinstance(expected, tuple) and isinstance(found, tuple):
        missing, extra = sorted(set(expected) - set(found)), sorted(set(found) - set(expected))
        return f"it lacks {missing[:3]} and has {extra[:3]} more"
    return f"{expected}, not {found}"
