"""Small policy on states in NumPy: a multilayer perceptron from features of the scene to a chunk of actions.

:mod:`nimbus.datagen.policies.state_training` trains one.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.errors import InputError
from nimbus.datagen.policies.perceptron import predict
from nimbus.datagen.policies.policy import Needs, PolicyObservation
from nimbus.datagen.policies.trained_policy import TrainedPolicy, read_weights

_SLOW = 0.3
"""Factor on velocities [rad/s] in the input, relative to positions [rad]."""
_ROTATION = ("r11", "r21", "r31", "r12", "r22", "r32")
_SHAPE = 10
"""Number of entries of an object's shape in its current orientation."""


def state_vector(state: FloatArray, velocity: FloatArray, scene: FloatArray, names: tuple[str, ...]) -> FloatArray:
    """Return the input of the network: joints, velocities, scene, and the shape and tool-frame pose of each object.

    The shape of an object does not change when the frame of a symmetric box is rotated by a symmetry. It consists of
    the extents as a tensor in the world, ``R diag(extents) Rᵀ`` (6), and the anisotropy of its ground plan (4).

    Args:
        state: (T, J) joint positions [rad or m].
        velocity: (T, J)
        scene: (T, F) values of :class:`~nimbus.datagen.policies.features.SceneFeatures`.
        names: (F,) names of its entries.

    Returns:
        (T, D)
    """
    place = {name: index for index, name in enumerate(names)}
    tool = next(name.removesuffix(".x") for name in names if name.endswith(".tool.x"))
    position = _columns(scene, place, tool, "x", "y", "z")
    one = _columns(scene, place, tool, "r11", "r21", "r31")
    two = _columns(scene, place, tool, "r12", "r22", "r32")
    axes = np.stack([one, two, np.cross(one, two)], axis=1)  # rows are the tool's axes in the world
    objects = _objects(names)
    seen = [np.einsum("tij,tj->ti", axes, _columns(scene, place, name, "x", "y", "z") - position) for name in objects]
    shapes = [_shape(scene, place, name) for name in objects]
    return np.concatenate([state, _SLOW * velocity, scene, *seen, *shapes], axis=1)


def input_choices(joint_count: int, names: tuple[str, ...]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the two choices (D,) of inputs from :func:`state_vector`: with the rotations of objects, or with shapes.

    Args:
        joint_count: Number J of joints.
        names: (F,) names of the scene's entries.
    """
    objects, first = _objects(names), 2 * joint_count
    count = first + len(names) + 3 * len(objects)
    with_rotations, with_shapes = np.ones((2, count + _SHAPE * len(objects)), dtype=bool)
    with_rotations[count:] = False
    rotations = {f"{name}.{entry}" for name in objects for entry in _ROTATION}
    with_shapes[[first + index for index, name in enumerate(names) if name in rotations]] = False
    return with_rotations, with_shapes


def input_width(joint_count: int, names: tuple[str, ...]) -> int:
    """Return the number D of entries of :func:`state_vector`; the arguments are those of :func:`input_choices`."""
    return len(input_choices(joint_count, names)[0])


def _objects(names: tuple[str, ...]) -> list[str]:
    return [name.removesuffix(".present") for name in names if name.endswith(".present")]


def _shape(scene: FloatArray, place: dict[str, int], name: str) -> FloatArray:
    one, two = _columns(scene, place, name, *_ROTATION[:3]), _columns(scene, place, name, *_ROTATION[3:])
    turn = np.stack([one, two, np.cross(one, two)], axis=2)
    extents = _columns(scene, place, name, "width", "depth", "height")
    tensor = np.einsum("tij,tj,tkj->tik", turn, extents, turn)
    xx, xy, xz, yy, yz, zz = (tensor[:, row, column] for row in range(3) for column in range(row, 3))
    plan = np.maximum(xx + yy, 1e-6)
    return np.stack([xx, xy, xz, yy, yz, zz, (xx - yy) / plan, 2.0 * xy / plan, xz / plan, yz / plan], axis=1)


def posture_part(state: FloatArray, joint_names: tuple[str, ...], action_names: tuple[str, ...]) -> FloatArray:
    """Return the positions (T, A) that actions are relative to: those of arm joints [rad or m], and 0 for grippers.

    Args:
        state: (T, J) joint positions [rad or m].
        joint_names: (J,) names of the joints.
        action_names: (A,) names of the actions; the action of an arm joint has the joint's name.
    """
    columns = [state[:, joint_names.index(name)] if name in joint_names else 0.0 * state[:, 0] for name in action_names]
    return np.stack(columns, axis=1)


def _columns(scene: FloatArray, place: dict[str, int], name: str, *entries: str) -> FloatArray:
    return scene[:, [place[f"{name}.{entry}"] for entry in entries]]


class StatePolicy(TrainedPolicy):
    """Policy that runs a trained network on states.

    Args:
        folder: Folder with weights and settings.

    Raises:
        InputError: Files are missing or damaged.
    """

    needs = Needs(cameras=(), environment_state=True)

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._weights = read_weights(self.path)
        expected = input_width(len(self.settings.joint_names), self.settings.feature_names)
        found = len(self._weights["x_mean"]) if "x_mean" in self._weights else 0
        if found != expected:
            what = f"the network has {found} inputs; this version of Nimbus gives {expected}"
            raise InputError(what, where=str(self.path), instead="train the policy again")

    def act(self, observation: PolicyObservation) -> NDArray[np.floating]:
        """Compute the next actions (K, A) [rad or m]."""
        seen = observation
        mine = self.settings
        x = state_vector(seen.state[None], seen.velocity[None], seen.environment_state[None], mine.feature_names)
        actions = predict(self._weights, x).reshape(mine.horizon, -1)
        return actions + posture_part(seen.state[None], mine.joint_names, mine.action_names) * mine.is_relative
