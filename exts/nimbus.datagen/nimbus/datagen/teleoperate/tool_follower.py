"""Motion of one arm under an operator: inverse kinematics in every period, with limited speed and acceleration."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.spatial.transform import Rotation

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.geometry.transforms import make_transform
from nimbus.datagen.plan.arm import ArmKinematics, arm_model
from nimbus.datagen.teleoperate.operator_input import (
    HandlePose,
    JointTarget,
    PoseTarget,
    ToolCommand,
    ToolMotion,
    ToolTwist,
)

if TYPE_CHECKING:
    from nimbus.datagen.robots.robot import Manipulator
    from nimbus.datagen.simulate.newton import NewtonSimulation

FASTEST, FASTEST_TURN = 0.6, 2.5
"""Largest speed [m/s] and angular speed [rad/s] of a tool: those of quick human motion, faster than tremor."""
_PACE = 0.8
"""Fraction of the joint limits that an operator can use, so that physics can follow."""
_AHEAD, _AHEAD_TURN = 0.05, 0.4
"""Largest distance from the commanded tool to a target that a velocity moves [m, rad]."""
_LEASH, _LEASH_TURN = 0.025, 0.26
"""Largest distance of a target from the reached pose of a blocked tool [m, rad], so that little must be undone."""
_CREEP, _CREEP_TURN = 0.02, 0.15
"""Speed toward the target below which a tool beyond its leash counts as blocked [m/s, rad/s]."""
_STALLED = 0.2
"""Time of creeping after which a tool is blocked [s]; a tool at rest needs about half of it to speed up."""
_BLOCKED = 0.04
"""Deviation of a posture from its reference above which a joint counts as blocked [rad or m]."""
_ITERATIONS, _MAX_STEP = 6, 0.3
"""Number of iterations of inverse kinematics per period, and largest step of a joint per iteration [rad]."""
_THERE = 1e-9
"""Distance from its target within which a joint does not limit the speed of the others [rad or m]."""
_GRIPPER_TIME = 0.5
"""Time in which the fingers travel through their full range [s]."""


class ToolFollower:
    """Converter of commands for one tool to joint positions of its arm, one period at a time.

    Equal inputs give equal positions, because nothing depends on a clock.

    Args:
        simulation: Simulation loaded with a layout.
        arm: Arm with the tool.
    """

    def __init__(self, simulation: NewtonSimulation, arm: Manipulator) -> None:
        self._simulation, self._arm = simulation, arm
        self._period = 1.0 / simulation.rate
        tool = make_transform(arm.tool.position, arm.tool.wxyz)
        model = arm_model(simulation.model, arm_joints=arm.arm.joints, tool_body=arm.tool.link, body_T_tool=tool)
        self._kinematics = ArmKinematics(model)
        self._velocity = np.multiply(arm.arm.velocity_limits, _PACE)
        self._acceleration = np.multiply(arm.arm.acceleration_limits, _PACE)
        self._columns = [simulation.joint_names.index(name) for name in arm.arm.joints]
        gripper = arm.gripper
        self._low, self._high = sorted((gripper.closed, gripper.open))
        self.restart()

    def restart(self) -> None:
        """Set the target to the current posture."""
        self._q = self._simulation.joint_positions()[self._columns]
        self._previous_step = np.zeros(len(self._q))
        self.target: FloatArray = self._kinematics.tool_pose(self._q)
        """(4, 4) target pose of the tool, ``world_T_tool`` [m]."""
        self._joint_target: FloatArray | None = None
        self._anchor: tuple[FloatArray, FloatArray] | None = None
        """Pose of the handle and target of the tool at the time when the clutch was engaged."""
        self._reached = self.target.copy()
        """(4, 4) pose of the tool in the last period, ``world_T_tool`` [m]."""
        self._stalled = [0, 0]
        """Number of periods for which the tool has crept: its position, its rotation."""
        self.is_blocked = False
        """True if the tool does not get to its target: something is in the way, or the target is out of reach."""
        self._opening = float(np.clip(self._measured_opening(), self._low, self._high))
        self._opening_target = self._opening

    def resume(self, command: FloatArray) -> None:
        """Continue from an earlier command (J + 1,) [rad or m], after physics went back to it."""
        self.restart()
        self._q = np.array(command[:-1], dtype=float)
        self.target = self._kinematics.tool_pose(self._q)
        # If an object is held, the commanded opening is smaller than the measured one.
        self._opening = self._opening_target = float(np.clip(command[-1], self._low, self._high))

    @property
    def commanded_pose(self) -> FloatArray:
        """Pose (4, 4) of the tool in the last commanded posture, ``world_T_tool`` [m]."""
        return self._kinematics.tool_pose(self._q)

    @property
    def opening(self) -> float:
        """Requested opening of the gripper, from 0 (closed) to 1 (open); the fingers take some time to get there."""
        gripper = self._arm.gripper
        return (self._opening_target - gripper.closed) / (gripper.open - gripper.closed)

    @property
    def finger_gap(self) -> float:
        """Part of the travel by which the fingers are wider open than commanded."""
        gripper = self._arm.gripper
        return (self._measured_opening() - self._opening) / (gripper.open - gripper.closed)

    def _measured_opening(self) -> float:
        """Return the position of the first finger joint [rad or m]."""
        first = self._simulation.joint_names.index(self._arm.gripper.joints[0])
        return float(self._simulation.joint_positions()[first])

    def step(self, command: ToolCommand) -> FloatArray:
        """Return the positions (J + 1,) of the arm and the gripper to command in the next period [rad or m]."""
        self._aim(command)
        self._shorten_leash(command.motion)
        wanted = self._joint_target
        if wanted is None:
            wanted = self._kinematics.approach(self._limited(), self._q, iterations=_ITERATIONS, max_step=_MAX_STEP)
        low, high = self._kinematics.limits.T
        self._q = np.clip(self._q + self._step_toward(np.clip(wanted, low, high)), low, high)
        travel = (self._high - self._low) * self._period / _GRIPPER_TIME
        self._opening += float(np.clip(self._opening_target - self._opening, -travel, travel))
        return np.append(self._q, self._opening)

    def _aim(self, command: ToolCommand) -> None:
        """Update the targets from a command."""
        if command.opening is not None:
            gripper, share = self._arm.gripper, float(np.clip(command.opening, 0.0, 1.0))
            self._opening_target = gripper.closed + share * (gripper.open - gripper.closed)
        match command.motion:
            case PoseTarget(world_T_tool=pose):
                self._set_target(np.array(pose, dtype=float))
            case HandlePose(space_T_handle=handle, is_engaged=is_engaged):
                self._follow_handle(np.asarray(handle, dtype=float), is_engaged)
            case ToolTwist(linear=linear, angular=angular):
                turn = Rotation.from_rotvec(np.asarray(angular, dtype=float) * self._period).as_matrix()
                pose = self.target.copy()
                pose[:3, 3] += np.asarray(linear, dtype=float) * self._period
                pose[:3, :3] = turn @ pose[:3, :3]
                self._set_target(self._held_back(pose))
            case JointTarget(positions=positions):
                self._joint_target = np.asarray(positions, dtype=float)
                self.target = self._kinematics.tool_pose(self._joint_target)
            case None:
                self._anchor = None

    def _set_target(self, pose: FloatArray) -> None:
        self.target, self._joint_target = pose, None

    def _follow_handle(self, handle: FloatArray, is_engaged: bool) -> None:
        if not is_engaged:
            self._anchor = None
            return
        if self._anchor is None:
            self._anchor = handle.copy(), self.target.copy()
        from_handle, from_target = self._anchor
        pose = from_target.copy()
        pose[:3, 3] += handle[:3, 3] - from_handle[:3, 3]
        pose[:3, :3] = handle[:3, :3] @ from_handle[:3, :3].T @ from_target[:3, :3]
        self._set_target(pose)

    def _shorten_leash(self, motion: ToolMotion | None) -> None:
        """Bring the target of a blocked tool back to its leash."""
        before = self._reached
        self._reached = self._kinematics.tool_pose(self._simulation.joint_positions()[self._columns])
        self.is_blocked = False
        if self._joint_target is not None:
            return
        way, turn = _difference(self._reached, self.target)
        moved, turned = _difference(before, self._reached)
        for part, (error, motion_of, most, creep) in enumerate(
            ((way, moved, _LEASH, _CREEP), (turn, turned, _LEASH_TURN, _CREEP_TURN))
        ):
            length = float(np.linalg.norm(error))
            is_creeping = length > most and motion_of @ error < creep * self._period * length
            self._stalled[part] = self._stalled[part] + 1 if is_creeping else 0
        is_stalled = [count * self._period > _STALLED for count in self._stalled]
        if not any(is_stalled):
            return
        self.is_blocked = True
        if isinstance(motion, PoseTarget):
            return  # the operator sees the target, and moves it back directly
        self.target = _between(
            self._reached,
            self.target,
            most=_LEASH if is_stalled[0] else np.inf,
            most_turn=_LEASH_TURN if is_stalled[1] else np.inf,
        )
        if isinstance(motion, HandlePose) and self._anchor is not None:
            # The part of the handle's motion that the tool could not follow does not have to be undone.
            self._anchor = np.array(motion.space_T_handle, dtype=float), self.target.copy()

    def _held_back(self, pose: FloatArray) -> FloatArray:
        """Limit the distance of a target from the commanded tool."""
        here = self.commanded_pose
        return _between(here, pose, most=_AHEAD, most_turn=_AHEAD_TURN)

    def _limited(self) -> FloatArray:
        """Return the pose for this period: toward the target, at most at the largest speed of a tool."""
        # The pose is two periods ahead, so that near the target the joint limits, which include braking, determine the
        # speed.
        ahead = 2 * self._period
        return _between(self.commanded_pose, self.target, most=FASTEST * ahead, most_turn=FASTEST_TURN * ahead)

    def _step_toward(self, wanted: FloatArray) -> FloatArray:
        """Return the step (J,) of this period, limited by speed, acceleration and braking distance."""
        error, period = wanted - self._q, self._period
        # v² = 2 a s: a joint that is faster than this cannot stop at its target.
        most = np.minimum(self._velocity, np.sqrt(2 * self._acceleration * np.abs(error))) * period
        # One common factor for all joints keeps the tool on its path.
        far = np.abs(error) > _THERE
        step = error * min(1.0, float(np.min(most[far] / np.abs(error[far]), initial=1.0)))
        change = self._acceleration * period**2
        step = np.clip(step, self._previous_step - change, self._previous_step + change)
        deviation = self._simulation.reference[self._columns] - self._simulation.joint_positions()[self._columns]
        step = np.where((np.abs(deviation) > _BLOCKED) & (step * deviation > 0), 0.0, step)
        self._previous_step = step
        return step


def _difference(start: FloatArray, end: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the way (3,) [m] and the rotation vector (3,) [rad] from one pose to another."""
    return end[:3, 3] - start[:3, 3], Rotation.from_matrix(end[:3, :3] @ start[:3, :3].T).as_rotvec()


def _between(start: FloatArray, end: FloatArray, *, most: float, most_turn: float) -> FloatArray:
    """Interpolate from one pose toward another, up to some distance and angle from the first [m, rad]."""
    way, turn = _difference(start, end)
    length, angle = float(np.linalg.norm(way)), float(np.linalg.norm(turn))
    pose = start.copy()
    pose[:3, 3] += way * min(1.0, most / max(length, 1e-12))
    pose[:3, :3] = Rotation.from_rotvec(turn * min(1.0, most_turn / max(angle, 1e-12))).as_matrix() @ start[:3, :3]
    return pose
