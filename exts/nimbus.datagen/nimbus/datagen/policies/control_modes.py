"""Control modes: representations of actions other than absolute joint positions, and conversions between them.

``joint``           absolute positions of all joints [rad or m], as stored
``joint_relative``  arm joints relative to the posture at which the action is given, grippers absolute
``tool_pose``       per arm the tool's position in the world [m], its rotation, and the gripper
``tool_delta``      the same relative to the tool's pose at which the action is given, along and about the world's axes
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.trajectory import Reason
from nimbus.datagen.errors import InputError, suggest
from nimbus.datagen.execute.planning_scenes import planning_scene
from nimbus.datagen.geometry.mujoco_library import mujoco
from nimbus.datagen.policies.policy import PolicyFault
from nimbus.datagen.policies.rotations import ROTATION_LIMITS, ROTATION_NAMES, rotation_matrix, rotation_numbers
from nimbus.datagen.robots.robot import Robot

if TYPE_CHECKING:
    from nimbus.datagen.simulate.newton import NewtonSimulation

_NEAR = 0.6
"""Largest move of a joint between consecutive commands [rad]; a solution farther away is another posture."""
_FREE = 6
"""Number of joints with which an arm reaches a pose in every orientation. With fewer joints, every solution has a
rotation error, and the errors of relative steps add up: an episode of the SO-101 succeeded with none of the three
rotation forms."""
_FURTHEST = 2.0
"""Largest distance of a tool from the world's origin, and largest length of a step [m]."""


class ControlMode(ABC):
    """Representation of a robot's actions.

    Args:
        robot: The robot.
        rotation: Form of rotations, for modes that have rotations.
    """

    base = ""
    """Description of the reference of the entries; empty if they are absolute."""

    def __init__(self, robot: Robot, *, rotation: str = "6d") -> None:
        self._robot, self.rotation = robot, rotation
        ends = np.cumsum([len(one.arm.joints) + 1 for one in robot.arms])
        self._arms = [
            (one, slice(end - 1 - len(one.arm.joints), end - 1)) for one, end in zip(robot.arms, ends, strict=True)
        ]
        """Each arm with its range of joint entries in a command; the entry of the gripper follows them."""

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Names of the entries of an action."""

    @property
    def units(self) -> tuple[str, ...]:
        """Units of the entries of an action, known after :meth:`begin`; empty for an entry without a unit."""
        return self._units

    @abstractmethod
    def to_commands(self, actions: FloatArray, posture: FloatArray) -> FloatArray:
        """Convert actions (K, M) to commands (K, A) [rad or m].

        Args:
            actions: In this mode.
            posture: (A,) command for the posture that the actions refer to, or (K, A) for each action.

        Raises:
            PolicyFault: An action has no command.
        """

    @abstractmethod
    def from_commands(self, commands: FloatArray, posture: FloatArray) -> FloatArray:
        """Convert commands (K, A) [rad or m] to actions (K, M) in this mode; see :meth:`to_commands`."""

    def limits(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the smallest and largest actions (M,) for the smallest and largest commands (A,)."""
        return low, high

    def begin(self, simulation: NewtonSimulation) -> None:
        """Prepare for the episode that is loaded in the simulation."""
        model = simulation.model
        slides = {model.joint(at).name for at in range(model.njnt) if model.jnt_type[at] == mujoco.mjtJoint.mjJNT_SLIDE}
        leading = (name for one, _ in self._arms for name in (*one.arm.joints, one.gripper.joints[0]))
        self._units = tuple("m" if name in slides else "rad" for name in leading)


class JointControl(ControlMode):
    """Absolute positions of all joints, the stored representation."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the joints and grippers."""
        return self._robot.action_names

    def to_commands(self, actions: FloatArray, posture: FloatArray) -> FloatArray:
        """Return the actions themselves."""
        return actions

    def from_commands(self, commands: FloatArray, posture: FloatArray) -> FloatArray:
        """Return the commands themselves."""
        return commands


class RelativeJointControl(JointControl):
    """Positions of arm joints relative to the posture at which the action is given, and absolute ones of grippers."""

    base = "measured joint positions of the same row; grippers are absolute"

    def to_commands(self, actions: FloatArray, posture: FloatArray) -> FloatArray:
        """Add the posture to the arms' entries."""
        return actions + posture * self._is_arm

    def from_commands(self, commands: FloatArray, posture: FloatArray) -> FloatArray:
        """Subtract the posture from the arms' entries."""
        return commands - posture * self._is_arm

    def limits(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the range of each joint in both directions; grippers are unchanged."""
        span = np.where(self._is_arm, high - low, high)
        return np.where(self._is_arm, -span, low), span

    @property
    def _is_arm(self) -> FloatArray:
        return np.array([entry for one, _ in self._arms for entry in (*[1.0] * len(one.arm.joints), 0.0)])


class ToolControl(ControlMode):
    """Poses of the tools in the world, and the grippers."""

    @property
    def names(self) -> tuple[str, ...]:
        """``x``, ``y``, ``z``, the rotation and ``gripper``, with the arm's name as a prefix for several arms."""
        several = len(self._robot.arms) > 1
        entries = ("x", "y", "z", *ROTATION_NAMES[self.rotation], "gripper")
        return tuple(f"{one.name}_{entry}" if several else entry for one, _ in self._arms for entry in entries)

    @property
    def units(self) -> tuple[str, ...]:
        """Units: ``m`` for positions, ``rad`` for angles, and the unit of the gripper."""
        turn = ("rad" if self.rotation == "euler" else "",) * (self._width - 4)
        grippers = (self._units[joints.stop] for _, joints in self._arms)
        return tuple(unit for gripper in grippers for unit in ("m", "m", "m", *turn, gripper))

    @property
    def _width(self) -> int:
        """Number of entries of one arm."""
        return 4 + len(ROTATION_NAMES[self.rotation])

    def begin(self, simulation: NewtonSimulation) -> None:
        """Set the base poses of the arms to those of the episode."""
        super().begin(simulation)
        self._scenes = {one.name: planning_scene(simulation, one.name) for one, _ in self._arms}

    def limits(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return a wide range around the world's origin, and the ranges of the grippers."""
        far = [*[_FURTHEST] * 3, *[ROTATION_LIMITS[self.rotation]] * (self._width - 4)]
        ends = [joints.stop for _, joints in self._arms]
        return (
            np.concatenate([[*np.negative(far), low[end]] for end in ends]),
            np.concatenate([[*far, high[end]] for end in ends]),
        )

    def to_commands(self, actions: FloatArray, posture: FloatArray) -> FloatArray:
        """Solve for the joints of each pose, starting from the previous command."""
        rows = np.asarray(actions, dtype=float)
        postures = np.broadcast_to(np.asarray(posture, dtype=float), (len(rows), np.shape(posture)[-1]))
        commands: list[FloatArray] = []
        for action, here in zip(rows, postures, strict=True):
            commands.append(self._command_of(action, here, before=commands[-1] if commands else here))
        return np.array(commands)

    def _command_of(self, action: FloatArray, posture: FloatArray, *, before: FloatArray) -> FloatArray:
        command = np.array(before)
        for number, (one, joints) in enumerate(self._arms):
            entries = action[number * self._width : (number + 1) * self._width]
            pose = np.eye(4)
            pose[:3, 3], pose[:3, :3] = entries[:3], rotation_matrix(entries[3:-1], self.rotation)
            pose = self._from_base(one.name, pose, posture[joints])
            solved = self._scenes[one.name].arm.solve(pose, before[joints])
            if solved is None or np.abs(solved - before[joints]).max() > _NEAR:
                place = ", ".join(f"{value:.2f}" for value in pose[:3, 3])
                raise PolicyFault(Reason.BAD_ACTION, f"{one.name} cannot reach the pose at [{place}] from its posture")
            command[joints], command[joints.stop] = solved, entries[-1]
        return command

    def tool_poses(self, command: FloatArray) -> list[FloatArray]:
        """Return the pose of each arm's tool in the world (4, 4), in the posture of a command (A,)."""
        return [self._scenes[one.name].tool_pose(command[joints]) for one, joints in self._arms]

    def from_commands(self, commands: FloatArray, posture: FloatArray) -> FloatArray:
        """Return the poses of the tools in the commanded postures."""
        rows, commands = [], np.asarray(commands, dtype=float)
        for command, here in zip(commands, np.broadcast_to(posture, commands.shape), strict=True):
            entries: list[float] = []
            for (one, joints), pose in zip(self._arms, self.tool_poses(command), strict=True):
                pose = self._to_base(one.name, pose, here[joints])
                turn = rotation_numbers(pose[:3, :3], self.rotation, near=self._reference(one.name, one.arm.home))
                entries += [*pose[:3, 3], *turn, command[joints.stop]]
            rows.append(entries)
        return np.array(rows)

    def _to_base(self, arm: str, pose: FloatArray, joints: FloatArray) -> FloatArray:
        """Convert a pose in the world to the reference frame of this mode."""
        return pose

    def _from_base(self, arm: str, pose: FloatArray, joints: FloatArray) -> FloatArray:
        """Convert an action's pose to the world frame."""
        return pose

    def _reference(self, arm: str, home: tuple[float, ...]) -> FloatArray:
        """Return the rotation (3, 3) near which quaternions and angles stay: that of the tool in the home posture."""
        return self._scenes[arm].tool_pose(home)[:3, :3]


class ToolDeltaControl(ToolControl):
    """Displacements of the tools from their current poses, along and about the world's axes, and the grippers."""

    base = "tool pose at the measured joint positions of the same row, world axes; grippers are absolute"

    def _to_base(self, arm: str, pose: FloatArray, joints: FloatArray) -> FloatArray:
        here, step = self._scenes[arm].tool_pose(joints), np.eye(4)
        step[:3, 3], step[:3, :3] = pose[:3, 3] - here[:3, 3], pose[:3, :3] @ here[:3, :3].T
        return step

    def _from_base(self, arm: str, pose: FloatArray, joints: FloatArray) -> FloatArray:
        here, there = self._scenes[arm].tool_pose(joints), np.eye(4)
        there[:3, 3], there[:3, :3] = pose[:3, 3] + here[:3, 3], pose[:3, :3] @ here[:3, :3]
        return there

    def _reference(self, arm: str, home: tuple[float, ...]) -> FloatArray:
        return np.eye(3)


_MODES = {
    "joint": JointControl,
    "joint_relative": RelativeJointControl,
    "tool_pose": ToolControl,
    "tool_delta": ToolDeltaControl,
}
MODE_NAMES = tuple(_MODES)


def make_control(name: str, robot: Robot, *, rotation: str = "6d", where: str = "control_mode") -> ControlMode:
    """Make a control mode by name.

    Raises:
        InputError: There is no such mode or form of rotations, or the robot cannot follow the mode.
    """
    if name not in _MODES:
        raise InputError(f"unknown control mode '{name}'", where=where, instead=suggest(name, MODE_NAMES))
    if rotation not in ROTATION_NAMES:
        raise InputError(f"unknown rotation '{rotation}'", where="rotation", instead=suggest(rotation, ROTATION_NAMES))
    if name == "tool_delta" and (few := next((one for one in robot.arms if len(one.arm.joints) < _FREE), None)):
        what = f"'{few.name}' of {robot.name} has {len(few.arm.joints)} joints, so errors of relative tool steps add up"
        raise InputError(what, where=where, instead="write tool_pose or joint_relative")
    return _MODES[name](robot, rotation=rotation)
