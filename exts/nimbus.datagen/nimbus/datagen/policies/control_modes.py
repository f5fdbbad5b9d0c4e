"""Control modes: other spellings of an action than absolute joint positions, and the way between them.

``joint``           absolute positions of all joints [rad or m], as stored
``joint_relative``  arm joints relative to the posture at which the policy was asked, grippers absolute
``tool_pose``       per arm the tool's position in the world [m], two columns of its rotation, and the gripper
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.trajectory import Reason
from nimbus.datagen.errors import InputError, suggest
from nimbus.datagen.execute.planning_scenes import planning_scene
from nimbus.datagen.policies.features import POSE
from nimbus.datagen.policies.policy import PolicyFault
from nimbus.datagen.robots.robot import Robot

if TYPE_CHECKING:
    from nimbus.datagen.simulate.newton import NewtonSimulation

_NEAR = 0.6
"""[rad] Joints move less than this from one command to the next; a solution further away is another posture."""


class ControlMode(ABC):
    """One spelling of the actions of a robot."""

    def __init__(self, robot: Robot) -> None:
        self._robot = robot

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Names of the entries of an action."""

    @abstractmethod
    def to_commands(self, actions: FloatArray, posture: FloatArray) -> FloatArray:
        """Convert actions (K, M) to commands (K, A) [rad or m].

        Args:
            actions: In this mode.
            posture: (A,) the command that asks for the posture at which the policy was asked.

        Raises:
            PolicyFault: An action has no command.
        """

    @abstractmethod
    def from_commands(self, commands: FloatArray, posture: FloatArray) -> FloatArray:
        """Convert commands (K, A) [rad or m] to actions (K, M) in this mode; ``posture`` as in :meth:`to_commands`."""

    def begin(self, simulation: NewtonSimulation) -> None:
        """Take over an episode that was loaded."""
        return


class JointControl(ControlMode):
    """Absolute positions of all joints: what is stored."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the joints and grippers."""
        return self._robot.action_names

    def to_commands(self, actions: FloatArray, posture: FloatArray) -> FloatArray:
        """The actions themselves."""
        return actions

    def from_commands(self, commands: FloatArray, posture: FloatArray) -> FloatArray:
        """The commands themselves."""
        return commands


class RelativeJointControl(JointControl):
    """Arm joints relative to the posture at which the policy was asked, grippers absolute."""

    def to_commands(self, actions: FloatArray, posture: FloatArray) -> FloatArray:
        """Add the posture to the arms' entries."""
        return actions + self._arms_of(posture)

    def from_commands(self, commands: FloatArray, posture: FloatArray) -> FloatArray:
        """Take the posture from the arms' entries."""
        return commands - self._arms_of(posture)

    def _arms_of(self, posture: FloatArray) -> FloatArray:
        mask = [entry for one in self._robot.arms for entry in (*[1.0] * len(one.arm.joints), 0.0)]
        return posture * np.array(mask)


class ToolControl(ControlMode):
    """Poses of the tools in the world, and the grippers."""

    @property
    def names(self) -> tuple[str, ...]:
        """``x`` … ``r32`` and ``gripper``, with the arm's name before them where the robot has several."""
        several = len(self._robot.arms) > 1
        return tuple(
            f"{one.name}_{entry}" if several else entry for one in self._robot.arms for entry in (*POSE, "gripper")
        )

    def begin(self, simulation: NewtonSimulation) -> None:
        """Place the arms as the episode has them."""
        self._scenes = {one.name: planning_scene(simulation, one.name) for one in self._robot.arms}

    def to_commands(self, actions: FloatArray, posture: FloatArray) -> FloatArray:
        """Solve for the joints of each pose, from the command before."""
        commands, before = [], np.asarray(posture, dtype=float)
        for action in np.asarray(actions, dtype=float):
            before = self._command_of(action, before)
            commands.append(before)
        return np.array(commands)

    def _command_of(self, action: FloatArray, before: FloatArray) -> FloatArray:
        command, first = np.array(before), 0
        for number, one in enumerate(self._robot.arms):
            entries = action[number * 10 : number * 10 + 10]
            joints = slice(first, first + len(one.arm.joints))
            solved = self._scenes[one.name].arm.solve(_pose_of(entries), before[joints])
            if solved is None or np.abs(solved - before[joints]).max() > _NEAR:
                place = ", ".join(f"{value:.2f}" for value in entries[:3])
                raise PolicyFault(Reason.BAD_ACTION, f"{one.name} cannot reach the pose at [{place}] from its posture")
            command[joints] = solved
            command[joints.stop] = entries[9]
            first = joints.stop + 1
        return command

    def from_commands(self, commands: FloatArray, posture: FloatArray) -> FloatArray:
        """Poses of the tools in the commanded postures."""
        rows = []
        for command in np.asarray(commands, dtype=float):
            first, entries = 0, []
            for one in self._robot.arms:
                last = first + len(one.arm.joints)
                pose = self._scenes[one.name].tool_pose(command[first:last])
                entries += [*pose[:3, 3], *pose[:3, 0], *pose[:3, 1], command[last]]
                first = last + 1
            rows.append(entries)
        return np.array(rows)


_MODES = {"joint": JointControl, "joint_relative": RelativeJointControl, "tool_pose": ToolControl}
MODE_NAMES = tuple(_MODES)


def make_control(name: str, robot: Robot, *, where: str = "control_mode") -> ControlMode:
    """Make a control mode by name.

    Raises:
        InputError: There is none of that name.
    """
    if name not in _MODES:
        raise InputError(f"unknown control mode '{name}'", where=where, instead=suggest(name, MODE_NAMES))
    return _MODES[name](robot)


def _pose_of(entries: Sequence[float] | FloatArray) -> FloatArray:
    """``world_T_tool`` (4, 4) from a position and two columns, made orthonormal (Gram-Schmidt)."""
    position, one, two = np.asarray(entries[:3]), np.asarray(entries[3:6]), np.asarray(entries[6:9])
    lengths = np.linalg.norm(one), np.linalg.norm(np.cross(one, two))
    if min(lengths) < 1e-6:
        raise PolicyFault(Reason.BAD_ACTION, "the columns of a rotation are zero or parallel")
    x = one / lengths[0]
    z = np.cross(one, two) / lengths[1]
    pose = np.eye(4)
    pose[:3, 0], pose[:3, 1], pose[:3, 2], pose[:3, 3] = x, np.cross(z, x), z, position
    return pose
