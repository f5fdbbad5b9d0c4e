"""Default simulator: the MuJoCo model that Newton builds from the USD stage, stepped on the CPU."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.layout import PhysicalLayout, RobotSetup
from nimbus.datagen.episode.trajectory import StartState
from nimbus.datagen.errors import InputError
from nimbus.datagen.geometry.mujoco_library import mujoco
from nimbus.datagen.geometry.transforms import quat_from_axis_angle, quat_multiply, quat_to_matrix
from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.progress import tick
from nimbus.datagen.registry import register
from nimbus.datagen.robots.robot import Robot
from nimbus.datagen.simulate.builder import SceneBuilder, compile_world, describe_world, start_positions
from nimbus.datagen.simulate.disturbances import DisturbanceForce
from nimbus.datagen.simulate.flexible import FLEXIBLE_STEP_RATE, FlexibleStates, compile_flexible, is_flexible
from nimbus.datagen.simulate.rates import smooth_reference, steps_per_period
from nimbus.datagen.usd.stage import StageInfo, layout_stage

STEP_RATE = 2400.0
"""Rate of physics [Hz]. Held objects creep less at higher rates, and the usual record rates divide this one."""

_UNSTABLE = tuple(int(getattr(mujoco.mjtWarning, f"mjWARN_BAD{what}")) for what in ("QPOS", "QVEL", "QACC", "CTRL"))
"""MuJoCo's warnings about numbers that are huge or not finite."""

OBSERVED_EVERY = 10
"""Number of physics steps between two evaluations of contacts, which gives 240 evaluations per second."""
_WIDE_PAD = 0.03
"""Width above which pads get several contact points [m]; with single points, opposite pads rotate their object."""


def has_wide_pads(robot: Robot) -> bool:
    """Return True for a robot with pads that need several contact points."""
    return max(max(one.gripper.pad_width, one.gripper.pad_height) for one in robot.arms) > _WIDE_PAD


@dataclass(frozen=True, kw_only=True)
class PhysicsSnapshot:
    """Full state of physics, from which the same commands give the same motion to the last bit."""

    data: mujoco.MjData
    """Copy of the engine's state, including the solver's warm start and sleeping islands."""
    commands: tuple[FloatArray, ...]
    """State of the controller: last two commands, reference, and delayed commands [rad, m]."""
    step: int | None


@register("simulator", "newton")
class NewtonSimulation:
    """One world in physics: robot, fixtures and objects with real contact and friction.

    The arm is driven by position controllers with gravity compensation. The commands, one per record period, are the
    control points of a uniform quadratic B-spline, so that the reference is smooth and depends only on the commands.
    Its velocity is fed forward, and so is its acceleration, multiplied by the arm's inertia.

    Args:
        stage: The scene.
        robot: The robot.
        rate: Record and command rate [Hz]; must divide 2400, and 600 in a world with cloth, cables or grains.
    """

    flexible: FlexibleStates
    """Cloths, cables and grains of the world."""
    rigid_model: mujoco.MjModel
    """The world without the bodies of flexible objects, for planning; ``model`` itself where there are none."""
    touch_gap: ClassVar[float] = 0.0
    """Distance between two surfaces up to which they count as touching while the robot acts [m]."""

    def __init__(self, stage: StageInfo, robot: Robot, *, rate: float) -> None:
        self.robot, self.stage, self.rate = robot, stage, rate
        self.steps_per_period = steps_per_period(STEP_RATE, rate)
        self._base, self._scenes = stage, SceneBuilder(stage, robot, visuals=False)

    def load(self, layout: PhysicalLayout) -> None:
        """Build the world of a layout in its start state."""
        if (stage := layout_stage(self._base, layout)) is not self.stage:
            self.stage, self._scenes = stage, SceneBuilder(stage, self.robot, visuals=False)
        builder = self._scenes.world(layout.objects)
        flexible = [item for item in layout.objects if is_flexible(item)]
        if flexible:
            found = compile_flexible(*describe_world(builder), flexible, robot=self.robot.joint_names)
            self.model, self.rigid_model, self.step_rate = found.model, found.rigid, FLEXIBLE_STEP_RATE
        else:
            self.model = self.rigid_model = compile_world(builder, cone="elliptic", impratio=50.0, solver="newton")
            self.step_rate = STEP_RATE
            make_contacts_believable(self.model)
        self.steps_per_period = steps_per_period(self.step_rate, self.rate)
        self.flexible = FlexibleStates(self.model, flexible)
        if has_wide_pads(self.robot):
            # Each pair of geoms gets several contact points, see _WIDE_PAD.
            self.model.opt.disableflags &= ~int(mujoco.mjtDisableBit.mjDSBL_MULTICCD)
        make_parts_stay(self.model, self._part_joints(layout), step_rate=self.step_rate)
        if layout.robot.offset != (0.0, 0.0, 0.0) or layout.robot.yaw:
            self._move_base(layout.robot)
        self.data = mujoco.MjData(self.model)  # after the base was moved, because this copies the poses of fixed bodies
        self.body_names = tuple(self.model.body(index).name for index in range(1, self.model.nbody))
        self.object_names = tuple(item.name for item in layout.objects)
        self._find_joints()
        self._find_belts(layout)
        self._set_up(layout.robot)
        self._disturbance = (
            DisturbanceForce(self.model, layout.disturbance, step_rate=self.step_rate) if layout.disturbance else None
        )
        self._step: int | None = None
        """Number of steps since the start of the recording; None before the start."""
        # Bodies of flexible objects come last; by default they have their shapes at rest.
        self.data.qpos[: self.rigid_model.nq] = start_positions(self.rigid_model, builder)
        for name, away in layout.robot.start.items():
            self.data.qpos[self.model.joint(name).qposadr[0]] += away
        mujoco.mj_forward(self.model, self.data)
        self.restart_controller()

    def _find_joints(self) -> None:
        names = self.robot.joint_names
        joints = [self.model.joint(name).id for name in names]
        self.joint_names = names
        self.qpos_index = np.array([self.model.jnt_qposadr[joint] for joint in joints])
        self.dof_index = np.array([self.model.jnt_dofadr[joint] for joint in joints])
        self._action_index, self._ratios = np.array(self.robot.action_index), np.array(self.robot.joint_ratios)
        self._offsets = np.array(self.robot.joint_offsets)
        self._leading = np.unique(self._action_index, return_index=True)[1]
        actuator_of = {int(self.model.actuator_trnid[index, 0]): index for index in range(self.model.nu)}
        self._actuators = np.array([actuator_of[joint] for joint in joints])
        self._stiffness = self.model.actuator_gainprm[self._actuators, 0]
        # The lead time is damping over stiffness. A reference that is this time ahead at the current velocity cancels
        # the damping force.
        self._lead_time = -self.model.actuator_biasprm[self._actuators, 2] / self._stiffness
        self._robot_trees = np.unique(self.model.body_treeid[self.model.jnt_bodyid[joints]])
        self._sleep_policy = self.model.tree_sleep_policy.copy()

    def _set_up(self, setup: RobotSetup) -> None:
        """Apply the drawn gains and delay of this episode; the feed-forward still assumes the nominal gains."""
        model = self.model
        arms = {name for one in self.robot.arms for name in one.arm.joints}
        rows = self._actuators[[name in arms for name in self.joint_names]]
        # Gains change only after lead times and stiffness were computed: to the controller, drawn gains are a model
        # error.
        model.actuator_gainprm[rows, 0] *= setup.stiffness
        model.actuator_biasprm[rows, 1] *= setup.stiffness
        model.actuator_biasprm[rows, 2] *= setup.damping
        self._delay_steps = round(setup.delay * self.step_rate)

    def _move_base(self, setup: RobotSetup) -> None:
        """Move the bases of all arms together, by the drawn offset and rotation about the robot's mount."""
        pivot, turn = np.array(self.stage.robot_position), quat_from_axis_angle((0, 0, 1), setup.yaw)
        bases = {int(self.model.body_rootid[self.model.joint(name).bodyid[0]]) for name in self.robot.joint_names}
        for base in sorted(bases):
            for model in {id(one): one for one in (self.model, self.rigid_model)}.values():
                model.body_pos[base] = pivot + quat_to_matrix(turn) @ (model.body_pos[base] - pivot) + setup.offset
                model.body_quat[base] = quat_multiply(turn, tuple(model.body_quat[base]))

    def _part_joints(self, layout: PhysicalLayout) -> list[int]:
        """Return the joints of objects, including those of free bodies."""
        names, model = {item.name for item in layout.objects if item.name not in self.flexible}, self.model
        return [joint for joint in range(model.njnt) if model.joint(joint).name.partition(".")[0] in names]

    def _find_belts(self, layout: PhysicalLayout) -> None:
        """Find the joints of conveyor belts, and their speeds."""
        moving = {
            f"{item.name}.{part.name}": part.joint.speed
            for item in layout.objects
            for part in open_library(item.library).model(item.kind, item.variant).parts
            if part.joint.speed
        }
        joints = [self.model.joint(name).id for name in moving]
        self._belt_positions = self.model.jnt_qposadr[joints].astype(int)
        self._belt_dofs = self.model.jnt_dofadr[joints].astype(int)
        self._belt_speeds = np.array(list(moving.values()))

    def _run_belts(self) -> None:
        """Run conveyor belts in place: objects on a belt get its speed, and the belt does not move."""
        self.data.qpos[self._belt_positions] = 0.0
        self.data.qvel[self._belt_dofs] = self._belt_speeds

    def _begin_period(self) -> None:
        """Keep everything that the robot carries awake.

        MuJoCo counts an object's steps at rest in the hand as well, so a gently released object would sleep in
        mid-air.
        """
        if self.flexible:
            return  # nothing sleeps in a world with flexible objects
        islands = self.data.tree_island
        borne = np.isin(islands, islands[self._robot_trees]) & (islands >= 0)
        self.model.tree_sleep_policy[:] = np.where(borne, mujoco.mjtSleepPolicy.mjSLEEP_NEVER, self._sleep_policy)

    def restart_controller(self) -> None:
        """Restart the controller, as if all earlier commands had been the current joint positions."""
        self._previous = self._command = self.reference = self.data.qpos[self.qpos_index].copy()
        # These are the (D, J) commands that the motors have not received yet because of the drawn delay.
        self._late_orders = self._late_reference = np.tile(self.reference, (self._delay_steps, 1))

    @property
    def action_names(self) -> tuple[str, ...]:
        """Names of the commands, see :class:`~nimbus.datagen.robots.robot.Robot`."""
        return self.robot.action_names

    def present_action(self) -> FloatArray:
        """Return the action (A,) that commands the current joint positions [rad, m]."""
        return self.data.qpos[self.qpos_index][self._leading].copy()

    def advance(self, action: FloatArray, *, observe: Callable[[], None] | None = None) -> None:
        """Run physics for one record period.

        Args:
            action: (A,) commanded positions [rad, m].
            observe: Called several times during the period, for measurements that are not recorded.
        """
        target = action[self._action_index] * self._ratios + self._offsets
        period = 1.0 / self.rate
        first, second = self._previous, self._command
        reference, velocity = smooth_reference(first, second, target, steps=self.steps_per_period, period=period)
        orders = np.concatenate([self._late_orders, reference + self._lead_time * velocity])
        reference = np.concatenate([self._late_reference, reference])
        acceleration = np.zeros(self.model.nv)
        acceleration[self.dof_index] = (first - 2 * second + target) / period**2
        tick()
        self._begin_period()
        for begin in range(0, self.steps_per_period, OBSERVED_EVERY):
            late = begin + self._delay_steps
            # The inertia matrix changes slowly, so it is evaluated only every tenth step.
            orders[late : late + OBSERVED_EVERY] += self._lead_of(acceleration)
            self._take_steps(orders[begin : min(begin + OBSERVED_EVERY, self.steps_per_period)], observe)
        self._previous, self._command = second, target
        self.reference = reference[self.steps_per_period - 1]
        self._late_orders, self._late_reference = orders[self.steps_per_period :], reference[self.steps_per_period :]

    def _take_steps(self, orders: FloatArray, observe: Callable[[], None] | None) -> None:
        """Take up to :data:`OBSERVED_EVERY` steps of physics, each with a row of position commands (n, J) [rad, m]."""
        model, data = self.model, self.data
        if self._disturbance and self._step is not None:
            self._disturbance.apply(data, self._step)
            self._step += len(orders)
        control = np.tile(data.ctrl, (len(orders), 1))
        control[:, self._actuators] = orders
        for step in range(len(orders)):
            data.ctrl[:] = control[step]
            if len(self._belt_dofs):
                self._run_belts()
            mujoco.mj_step(model, data)
            if observe and step == 0:
                observe()

    def _lead_of(self, acceleration: FloatArray) -> FloatArray:
        """Return the lead of position commands over the reference that compensates for the arm's inertia [rad, m]."""
        torque = np.zeros(self.model.nv)
        mujoco.mj_mulM(self.model, self.data, torque, acceleration)
        return torque[self.dof_index] / self._stiffness

    def state(self) -> StartState:
        """Return the full physics state."""
        return StartState(joint_positions=self.data.qpos.copy(), joint_velocities=self.data.qvel.copy())

    def restore(self, state: StartState) -> None:
        """Restore a state at rest, such as the one after :meth:`load`; the time of a disturbance counts from here.

        Raises:
            InputError: The state is one of another layout.
        """
        sizes = (len(state.joint_positions), len(state.joint_velocities))
        if sizes != (self.model.nq, self.model.nv):
            what = f"{sizes} positions and velocities; its layout has {(self.model.nq, self.model.nv)}"
            raise InputError(what, where="the start of the episode", instead="check where the dataset comes from")
        mujoco.mj_resetData(self.model, self.data)
        self._step = 0
        self.data.qpos[:] = state.joint_positions
        self.data.qvel[:] = state.joint_velocities
        mujoco.mj_forward(self.model, self.data)
        self.restart_controller()

    def snapshot(self) -> PhysicsSnapshot:
        """Copy the current state, even during motion; unlike :meth:`state` the copy is valid in this process only."""
        commands = (self._previous, self._command, self.reference, self._late_orders, self._late_reference)
        return PhysicsSnapshot(data=copy.copy(self.data), commands=commands, step=self._step)

    def rewind(self, snapshot: PhysicsSnapshot) -> None:
        """Return to the state of a snapshot that was taken since :meth:`load`."""
        mujoco.mj_copyData(self.data, self.model, snapshot.data)
        self._previous, self._command, self.reference, self._late_orders, self._late_reference = snapshot.commands
        self._step = snapshot.step

    @property
    def is_stable(self) -> bool:
        """Return True if all numbers have stayed finite; otherwise MuJoCo has silently reset the state."""
        return not any(self.data.warning[warning].number for warning in _UNSTABLE)

    def joint_positions(self) -> FloatArray:
        """Return the positions (J,) of arm and gripper joints [rad, m]."""
        return self.data.qpos[self.qpos_index].copy()

    def joint_velocities(self) -> FloatArray:
        """Return the velocities (J,) of arm and gripper joints [rad/s, m/s]."""
        return self.data.qvel[self.dof_index].copy()

    def body_pose(self, name: str) -> FloatArray:
        """Return ``world_T_body`` (4, 4) of a body [m]."""
        body = self.data.body(name)
        pose = np.eye(4)
        pose[:3, :3] = body.xmat.reshape(3, 3)
        pose[:3, 3] = self.points(name).mean(axis=0) if name in self.flexible else body.xpos
        return pose

    def points(self, name: str) -> FloatArray:
        """Return the vertices (V, 3) of a cloth, the ends of the links of a cable, or the centers of grains [m]."""
        return self.flexible.points(self.data, name)

    def body_positions(self) -> FloatArray:
        """Return the positions (B, 3) of all bodies in the world frame [m], in the order of ``body_names``."""
        positions = self.data.xpos.copy()
        self.flexible.move_roots(self.data, positions)
        return positions[1:]

    def body_wxyz(self) -> FloatArray:
        """Return the orientations (B, 4) of all bodies, unit quaternions wxyz."""
        return self.data.xquat[1:].copy()

    def body_speed(self, name: str) -> tuple[float, float]:
        """Return the linear [m/s] and angular [rad/s] speed of a body; for a flexible object, of its fastest point."""
        if name in self.flexible:
            return self.flexible.speed(self.data, name), 0.0
        velocity = np.zeros(6)
        mujoco.mj_objectVelocity(self.model, self.data, mujoco.mjtObj.mjOBJ_BODY, self.model.body(name).id, velocity, 0)
        return float(np.linalg.norm(velocity[3:])), float(np.linalg.norm(velocity[:3]))


def make_parts_stay(model: mujoco.MjModel, joints: Iterable[int], *, step_rate: float = STEP_RATE) -> None:
    """Stiffen the dry friction of joints of objects' parts; with MuJoCo's default, an open lid sinks slowly."""
    for joint in joints:
        degree = model.jnt_dofadr[joint]
        model.dof_solref[degree] = (2.2 / step_rate, 1.0)
        model.dof_solimp[degree] = (0.99, 0.999, 0.0001, 0.5, 2.0)


def make_contacts_believable(model: mujoco.MjModel) -> None:
    """Set stiff contacts, with which objects do not creep in the hand; docs/decisions.md has figures and reasons."""
    model.opt.timestep = 1.0 / STEP_RATE
    model.opt.iterations = 50
    # Islands at rest sleep until they are touched, which halves the cost of physics.
    model.opt.enableflags |= int(mujoco.mjtEnableBit.mjENBL_SLEEP)
    model.geom_gap[:] = model.geom_margin[:] = 0.0
    # Creep in the hand is proportional to this time constant; it is the shortest one that MuJoCo allows as stable.
    model.geom_solref[:] = (2.2 / STEP_RATE, 1.0)
    model.geom_solimp[:] = (0.95, 0.99, 0.001, 0.5, 2.0)
    # Contacts have six dimensions, for sliding, torsional and rolling friction. Without torsional friction objects spin
    # between the pads, and without rolling friction round objects never stop.
    model.geom_condim[:] = 6
    model.eq_solref[:] = (2.2 / STEP_RATE, 1.0)
    model.eq_solimp[:] = (0.99, 0.999, 0.0001, 0.5, 2.0)
