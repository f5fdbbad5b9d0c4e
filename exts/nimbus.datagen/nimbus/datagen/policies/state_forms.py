"""Forms of the joint state: all measured joints, or entries that match those of an action."""

from __future__ import annotations

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.errors import InputError, suggest
from nimbus.datagen.robots.robot import Robot

STATE_FORMS = ("measured", "commanded")
"""``measured``: all measured joints; ``commanded``: measured joints of the arms, and the last command of each
gripper."""


class StateForm:
    """Form of a robot's state.

    Args:
        robot: The robot.
        name: One of :data:`STATE_FORMS`.
        where: Location of the name, for errors.

    Raises:
        InputError: There is no form of that name.
    """

    def __init__(self, robot: Robot, name: str, *, where: str = "state") -> None:
        if name not in STATE_FORMS:
            raise InputError(f"unknown state '{name}'", where=where, instead=suggest(name, STATE_FORMS))
        self._is_whole = name == "measured"
        self.names = robot.joint_names if self._is_whole else robot.action_names
        index = np.array(robot.action_index)
        self._leading = np.unique(index, return_index=True)[1]
        self.action_index = index if self._is_whole else np.arange(len(self._leading))
        """Index of the action's entry for each entry of a state."""
        self._is_gripper = np.isin(self._leading, [joints[0] for joints in _grippers(robot)])

    def postures(self, joints: FloatArray) -> FloatArray:
        """Return (T, A) the commands for measured joint positions (T, J) [rad or m]."""
        return joints[:, self._leading]

    def rows(self, joints: FloatArray, asked: FloatArray) -> FloatArray:
        """Return the states (T, S) [rad or m].

        Args:
            joints: (T, J) measured positions [rad or m].
            asked: (T, A) command before each row; for the first row, the command for its posture [rad or m].
        """
        return joints if self._is_whole else np.where(self._is_gripper, asked, self.postures(joints))


def commands_before(posture: FloatArray, actions: FloatArray) -> FloatArray:
    """Return the command before each row, (T, A) [rad or m].

    Args:
        posture: (A,) command for the posture of the first row, which has no predecessor [rad or m].
        actions: (T, A) commands [rad or m].
    """
    return np.concatenate([posture[None], actions[:-1]])


def _grippers(robot: Robot) -> list[range]:
    """Return the indices of each gripper's joints in the state."""
    found, first = [], 0
    for one in robot.arms:
        first += len(one.arm.joints)
        found.append(range(first, first + len(one.gripper.joints)))
        first += len(one.gripper.joints)
    return found
