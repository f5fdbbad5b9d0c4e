"""Motion of one arm under an operator: inverse kinematics in every period, with limited speed and acceleration."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.spatial.transform import Rotation

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.geometry.transforms import make_transform
from nimbus.datagen.plan.arm import ArmKinematics, arm_model
from nimbus.datagen.teleoperate.joint_pace import JointPace
from nimbus.datagen.teleoperate.operator_input import (
    HandlePose,
    JointTarget,
    PoseTarget,
    ToolCommand,
    ToolMotion,
    ToolTwist,
)
from nimbus.datagen.teleoperate.pose_limits import limit_axes, move_toward, pose_difference

if TYPE_CHECKING:
    from nimbus.datagen.robots.robot import Manipulator
    from nimbus.datagen.simulate.newton import NewtonSimulation

FASTEST, FASTEST_TURN = 0.6, 2.5
"""Largest speed [m/s] and angular speed [rad/s] of a tool: those of quick human motion, faster than tremor."""
_PACE = 0.8
"""Fraction of the joint limits that an operator can use, so that physics can follow."""
_AHEAD, _AHEAD_TURN = 0.05, 0.4
"""Largest distance from the commanded tool to a target that a velocity moves, along and about each axis [m, rad]."""
_LEASH, _LEASH_TURN = 0.025, 0.26
"""Largest distance of a target from the reached pose of a blocked tool, along and about each axis [m, rad], so that
little must be undone."""
_MISSED, _MISSED_TURN = 0.001, 0.01
"""Position error and rotation error above which a pose counts as out of reach [m, rad]."""
_TILTED = 0.2
"""Largest rotation about each axis from an arm with fewer than six joints to its target [rad]."""
_SHARES = (1.0, 0.3)
"""Parts of a motion that are tried in turn, so that the tool stops close to the end of its reach."""
_RUSH = 1.5
"""Largest speed of a joint that a motion may require, relative to the limit of the joint. The joints of an arm that is
almost stretched have to move so much faster that they leave the path of the tool; the tool stops before."""
_PUSH = 0.005
"""Largest distance of a target from a blocked tool along an axis along which the operator does not move it [m]. A hand
that presses on a table slides along it."""
_TAUT = 0.9
"""Part of its leash beyond which a target that is not approached counts as blocked."""
_CREEP, _CREEP_TURN = 0.02, 0.15
"""Speed toward the target below which a tool on a taut leash counts as blocked [m/s, rad/s]."""
_STALLED = 0.2
"""Time of creeping after which a tool is blocked [s]; a tool at rest needs about half of it to speed up."""
_BLOCKED = 0.04
"""Deviation of a posture from its reference above which a joint counts as blocked [rad or m]."""
_ITERATIONS, _MAX_STEP = 6, 0.3
"""Number of iterations of inverse kinematics per period, and largest step of a joint per iteration [rad]."""
_ITERATIONS_TO_REACH = 20
"""Number of iterations to find out if a pose is in reach; a stretched arm needs more of them to fold."""
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
        self._places_first = model.nq < 6
        self._limits = np.multiply(arm.arm.velocity_limits, _PACE), np.multiply(arm.arm.acceleration_limits, _PACE)
        self._columns = [simulation.joint_names.index(name) for name in arm.arm.joints]
        gripper = arm.gripper
        self._low, self._high = sorted((gripper.closed, gripper.open))
        self.restart()

    def restart(self) -> None:
        """Set the target to the current posture."""
        self._q = self._simulation.joint_positions()[self._columns]
        self._pace = JointPace(*self._limits, self._period)
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
        self.is_out_of_reach = False
        """True if the last motion with a velocity was not followed, because it leads out of reach."""
        self._may_be_far = False
        """True if the target may be out of reach: it was dragged, or set back to a blocked tool."""
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
        low, high = self._kinematics.limits.T
        has_joints = self._joint_target is not None
        wanted = np.clip(self._next_posture() if self._joint_target is None else self._joint_target, low, high)
        self._q = np.clip(self._q + self._step_toward(wanted, brakes=has_joints), low, high)
        travel = (self._high - self._low) * self._period / _GRIPPER_TIME
        self._opening += float(np.clip(self._opening_target - self._opening, -travel, travel))
        return np.append(self._q, self._opening)

    def _aim(self, command: ToolCommand) -> None:
        """Update the targets from a command."""
        if command.motion is not None:
            self.is_out_of_reach = False
            self._may_be_far |= self.is_blocked or not isinstance(command.motion, ToolTwist)
        if command.opening is not None:
            gripper, share = self._arm.gripper, float(np.clip(command.opening, 0.0, 1.0))
            self._opening_target = gripper.closed + share * (gripper.open - gripper.closed)
        match command.motion:
            case PoseTarget(world_T_tool=pose):
                self._set_target(np.array(pose, dtype=float))
            case HandlePose(space_T_handle=handle, is_engaged=is_engaged):
                self._follow_handle(np.asarray(handle, dtype=float), is_engaged)
            case ToolTwist(linear=linear, angular=angular):
                way = np.asarray(linear, dtype=float) * self._period
                self._move_target(way, np.asarray(angular, dtype=float) * self._period)
            case JointTarget(positions=positions):
                self._joint_target = np.asarray(positions, dtype=float)
                self.target = self._kinematics.tool_pose(self._joint_target)
            case None:
                self._anchor = None

    def _set_target(self, pose: FloatArray) -> None:
        self.target, self._joint_target = pose, None

    def _move_target(self, way: FloatArray, turn: FloatArray) -> None:
        """Move the target by a way (3,) [m] and a rotation vector (3,) [rad], unless that is out of reach.

        The pose nearest to one that is out of reach lies in another direction: a stretched arm that is asked to move
        forward would sink. The target therefore stops.
        """
        if self.is_blocked:
            at, push = self._reached[:3, 3], self.target[:3, 3] - self._reached[:3, 3]
            self.target[:3, 3] = at + np.where(way == 0, np.clip(push, -_PUSH, _PUSH), push)
        moved = self._moved(self.target, way, turn)
        if moved is None and self._may_be_far and not self._is_reachable(self.target):
            self._set_target(self.commanded_pose)
            moved = self._moved(self.target, way, turn)
        self.is_out_of_reach = moved is None
        self._may_be_far = self._may_be_far and moved is None
        if moved is not None:
            self._set_target(moved)

    def _moved(self, start: FloatArray, way: FloatArray, turn: FloatArray) -> FloatArray | None:
        """Return a pose after a motion, or after a part of it; None if even the part is out of reach."""
        here = self.commanded_pose
        for share in _SHARES:
            pose = start.copy()
            pose[:3, 3] += share * way
            pose[:3, :3] = Rotation.from_rotvec(share * turn).as_matrix() @ pose[:3, :3]
            pose = limit_axes(here, pose, most=_AHEAD, most_turn=np.inf if self._places_first else _AHEAD_TURN)
            posture = self._approach(pose, iterations=_ITERATIONS_TO_REACH)
            reached = self._kinematics.tool_pose(posture)
            if self._misses(reached, pose) or self._rushes(posture, way, turn):
                continue
            # Its few joints determine a part of the rotation, which must not be wound up by keys.
            is_bound = self._places_first and turn.any()
            return limit_axes(reached, pose, most=np.inf, most_turn=_TILTED) if is_bound else pose
        return None

    def _is_reachable(self, pose: FloatArray) -> bool:
        """Return True if the arm reaches a pose from its posture."""
        posture = self._approach(pose, iterations=_ITERATIONS_TO_REACH)
        return not self._misses(self._kinematics.tool_pose(posture), pose)

    def _misses(self, reached: FloatArray, pose: FloatArray) -> bool:
        """Return True if a pose is not reached; arms with fewer than six joints have to reach the position only."""
        way, turn = pose_difference(reached, pose)
        return bool(np.linalg.norm(way) > _MISSED or (np.linalg.norm(turn) > _MISSED_TURN and not self._places_first))

    def _rushes(self, posture: FloatArray, way: FloatArray, turn: FloatArray) -> bool:
        """Return True if a motion needs joints that are far too fast at its end (J,) [rad or m], and more than now."""
        needed = self._speed(posture, way, turn)
        return needed > _RUSH and needed > self._speed(self._q, way, turn)

    def _speed(self, posture: FloatArray, way: FloatArray, turn: FloatArray) -> float:
        """Return the speed of the fastest joint for a motion in one period, relative to its limit."""
        jacobian, motion = self._kinematics.jacobian(posture), np.append(way, turn)
        if self._places_first:
            jacobian, motion = jacobian[:3], way
        return float(np.max(np.abs(np.linalg.lstsq(jacobian, motion, rcond=None)[0]) / self._pace.longest))

    def _approach(self, pose: FloatArray, *, iterations: int = _ITERATIONS) -> FloatArray:
        """Return the posture (J,) nearest to a pose [rad or m]."""
        return self._kinematics.approach(
            pose, self._q, iterations=iterations, max_step=_MAX_STEP, places_first=self._places_first
        )

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
        way, turn = pose_difference(self._reached, self.target)
        moved, turned = pose_difference(before, self._reached)
        for part, (error, motion_of, most, creep) in enumerate(
            ((way, moved, _LEASH, _CREEP), (turn, turned, _LEASH_TURN, _CREEP_TURN))
        ):
            length = float(np.linalg.norm(error))
            is_bound = part == 1 and self._places_first
            is_creeping = not is_bound and length > _TAUT * most and motion_of @ error < creep * self._period * length
            self._stalled[part] = self._stalled[part] + 1 if is_creeping else 0
        is_stalled = [count * self._period > _STALLED for count in self._stalled]
        if not any(is_stalled):
            return
        self.is_blocked = True
        if isinstance(motion, PoseTarget):
            return  # the operator sees the target, and moves it back directly
        self.target = limit_axes(
            self._reached,
            self.target,
            most=_LEASH if is_stalled[0] else np.inf,
            most_turn=_LEASH_TURN if is_stalled[1] else np.inf,
        )
        if isinstance(motion, HandlePose) and self._anchor is not None:
            # The part of the handle's motion that the tool could not follow does not have to be undone.
            self._anchor = np.array(motion.space_T_handle, dtype=float), self.target.copy()

    def _next_posture(self) -> FloatArray:
        """Return the posture (J,) [rad or m] of this period, on the straight way of the tool to its target."""
        # The pose is two periods ahead, so that near the target the joint limits, which include braking, determine the
        # speed.
        here, ahead = self.commanded_pose, 2 * self._period
        pose = move_toward(here, self.target, most=FASTEST * ahead, most_turn=FASTEST_TURN * ahead)
        posture = self._approach(pose)
        share = self._pace.share(posture - self._q, brakes=True)
        if share < 1.0:
            # Joints that move straight to a far posture take the tool off its way.
            way, turn = (float(np.linalg.norm(part)) for part in pose_difference(here, pose))
            return self._approach(move_toward(here, pose, most=share * way, most_turn=share * turn))
        return posture

    def _step_toward(self, wanted: FloatArray, *, brakes: bool) -> FloatArray:
        """Return the step (J,) of this period, limited by speed, acceleration and obstacles."""
        way = wanted - self._q
        step = self._pace.limit(way * self._pace.share(way, brakes=brakes))
        deviation = self._simulation.reference[self._columns] - self._simulation.joint_positions()[self._columns]
        step = np.where((np.abs(deviation) > _BLOCKED) & (step * deviation > 0), 0.0, step)
        self._pace.before = step
        return step
