"""Kinematics of the arm alone: its joints and its tool, without shapes and without the scene."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.geometry.mujoco_library import mujoco
from nimbus.datagen.geometry.transforms import quat_from_matrix

if TYPE_CHECKING:
    import mink


class ArmKinematics:
    """Inverse kinematics of a pose by Gauss-Newton steps, each a quadratic program that mink builds and daqp solves.

    Args:
        model: Model made by :func:`arm_model`.
        limit_margin: Distance that solutions keep from the joint limits [rad].
    """

    position_tolerance = 1e-4
    """Largest position error of a solution [m]."""
    rotation_tolerance = 1e-3
    """Largest rotation error of a solution [rad]."""
    rotation_slack = 0.15
    """Largest rotation error of a solution for an arm with fewer than six joints [rad], which cannot reach every
    rotation."""

    def __init__(self, model: mujoco.MjModel, *, limit_margin: float = 0.02) -> None:
        # These imports are slow, because mink loads SciPy; checking the names of skills needs neither.
        import mink

        from nimbus.datagen.plan.point_task import PointTask

        self.limits: FloatArray = model.jnt_range + np.array([limit_margin, -limit_margin])
        """(J, 2) limits of solutions [rad or m]."""
        self._configuration = mink.Configuration(model)
        self._task = mink.FrameTask("tool", "body", position_cost=1.0, orientation_cost=0.3, lm_damping=0.1)
        self._place = mink.FrameTask("tool", "body", position_cost=1.0, orientation_cost=0.02)
        self._places_first = model.nq < 6
        self._point = PointTask("tool", "body")
        self._turn = mink.FrameTask("tool", "body", position_cost=0.0, orientation_cost=1.0, lm_damping=1e-3)
        # The solver meets bounds only to 1e-6, so a slightly larger margin is requested.
        self._bounds = mink.ConfigurationLimit(model, gain=1.0, min_distance_from_limits=limit_margin + 1e-5)

    def solve(
        self, world_T_tool: FloatArray, seed_q: FloatArray, *, iterations: int = 25, max_step: float = 0.6
    ) -> FloatArray | None:
        """Return joint positions (J,) with the tool at a pose, near a start posture; None without convergence.

        Args:
            world_T_tool: (4, 4) target.
            seed_q: (J,) start posture.
            iterations: Largest number of Gauss-Newton steps.
            max_step: Largest move of a joint in one step [rad].
        """
        import mink

        if self._places_first:
            return self._solve_point(world_T_tool, seed_q, iterations=2 * iterations, max_step=max_step)
        configuration, task = self._configuration, self._task
        task.set_target(mink.SE3.from_matrix(world_T_tool))
        configuration.update(np.clip(seed_q, *(self.limits.T + [[2e-5], [-2e-5]])))
        for _ in range(iterations):
            error = np.abs(task.compute_error(configuration))
            if error[:3].max() < self.position_tolerance and error[3:].max() < self.rotation_tolerance:
                return configuration.q.copy()
            try:
                step = mink.solve_ik(configuration, [task], 1.0, "daqp", damping=1e-9, limits=[self._bounds])
            except mink.NoSolutionFound:
                return None
            configuration.update(configuration.q + step * min(1.0, max_step / max(np.abs(step).max(), 1e-12)))
        return None

    def _solve_point(
        self, world_T_tool: FloatArray, seed_q: FloatArray, *, iterations: int, max_step: float
    ) -> FloatArray | None:
        """Solve for the position first and the orientation second, for arms that cannot reach every pose."""
        import mink

        configuration, target = self._configuration, mink.SE3.from_matrix(world_T_tool)
        self._point.set_target(target)
        self._turn.set_target(target)
        configuration.update(np.clip(seed_q, *(self.limits.T + [[2e-5], [-2e-5]])))
        step = np.full(len(seed_q), np.inf)
        for _ in range(iterations):
            error = np.abs(self._task_error(target))
            settled = np.abs(step).max() < 2e-3 or error[3:].max() < self.rotation_tolerance
            if error[:3].max() < self.position_tolerance and settled:
                return configuration.q.copy() if error[3:].max() < self.rotation_slack else None
            # Within 2 cm the position becomes an equality constraint, so that rotating cannot move the tool away again.
            step = self._step([self._turn], [self._point]) if error[:3].max() < 0.02 else None
            if step is None:  # no step reaches the point exactly, so this one approaches it, and rotates
                step = self._step([self._task])
            if step is None:
                return None
            configuration.update(configuration.q + step * min(1.0, max_step / max(np.abs(step).max(), 1e-12)))
        return None

    def tool_pose(self, q: FloatArray) -> FloatArray:
        """Return ``world_T_tool`` (4, 4) of a posture (J,) [m]."""
        self._configuration.update(np.asarray(q, dtype=float))
        return self._configuration.get_transform_frame_to_world("tool", "body").as_matrix()

    def jacobian(self, q: FloatArray) -> FloatArray:
        """Return the velocities (6, J) of the tool per joint velocity at a posture (J,), in the axes of the world.

        The first three rows are linear [m], the others angular [rad].
        """
        world_R_tool = self.tool_pose(q)[:3, :3]
        local = self._configuration.get_frame_jacobian("tool", "body")
        return np.concatenate([world_R_tool @ local[:3], world_R_tool @ local[3:]])

    def approach(
        self,
        world_T_tool: FloatArray,
        seed_q: FloatArray,
        *,
        iterations: int,
        max_step: float,
        places_first: bool = False,
    ) -> FloatArray:
        """Return the joint positions (J,) within the limits that bring the tool nearest to a pose, reachable or not.

        Steps are damped, so that near singular postures and out of reach the arm slows down instead of jumping.

        Args:
            world_T_tool: (4, 4) target.
            seed_q: (J,) start posture.
            iterations: Largest number of steps.
            max_step: Largest move of a joint in one step [rad].
            places_first: Weigh the rotation so little that it hardly moves the tool; for arms that cannot reach every
                rotation.
        """
        import mink

        configuration, target = self._configuration, mink.SE3.from_matrix(world_T_tool)
        task = self._place if places_first else self._task
        task.set_target(target)
        configuration.update(np.clip(seed_q, *(self.limits.T + [[2e-5], [-2e-5]])))
        for _ in range(iterations):
            error = np.abs(task.compute_error(configuration))
            if error[:3].max() < self.position_tolerance and error[3:].max() < self.rotation_tolerance:
                break
            try:
                step = mink.solve_ik(configuration, [task], 1.0, "daqp", damping=1e-3, limits=[self._bounds])
            except mink.NoSolutionFound:
                break
            configuration.update(configuration.q + step * min(1.0, max_step / max(np.abs(step).max(), 1e-12)))
        return configuration.q.copy()

    def _step(self, tasks: list[mink.Task], first: list[mink.Task] | None = None) -> FloatArray | None:
        """Return a step within the limits toward the tasks that meets ``first`` exactly; None if there is none."""
        import mink

        try:
            return mink.solve_ik(
                self._configuration, tasks, 1.0, "daqp", damping=1e-4, limits=[self._bounds], constraints=first
            )
        except mink.NoSolutionFound:
            return None

    def _task_error(self, target: mink.SE3) -> FloatArray:
        self._task.set_target(target)
        return self._task.compute_error(self._configuration)


def arm_model(
    model: mujoco.MjModel, *, arm_joints: Sequence[str], tool_body: str, body_T_tool: FloatArray
) -> mujoco.MjModel:
    """Copy the chain of bodies from the world to the tool; joints outside the arm are fixed at ``qpos0``.

    Args:
        model: Model of the robot, possibly with more bodies.
        arm_joints: Names of the arm's joints, base first.
        tool_body: Name of the body that carries the tool.
        body_T_tool: (4, 4) pose of the tool in that body's frame [m].

    Returns:
        A model whose generalized positions are the arm's joints, base first, and whose last body is named ``tool``.
    """
    wanted = {model.joint(name).id for name in arm_joints}
    spec = mujoco.MjSpec()
    # Ranges of a compiled model are in radians.
    spec.compiler.degree = False
    parent = spec.worldbody
    for body in _chain(model, model.body(tool_body).id):
        parent = parent.add_body(pos=model.body_pos[body], quat=model.body_quat[body], **_INERTIA)
        start = model.body_jntadr[body]
        for joint in range(start, start + model.body_jntnum[body]):
            if joint in wanted:
                _copy_joint(model, joint, parent)
    parent.add_body(name="tool", pos=body_T_tool[:3, 3], quat=quat_from_matrix(body_T_tool[:3, :3]), **_INERTIA)
    arm = spec.compile()
    found = [arm.joint(index).name for index in range(arm.njnt)]
    if found != list(arm_joints):
        raise ValueError(f"arm joints {list(arm_joints)} are not the chain to body '{tool_body}', which has {found}")
    return arm


_INERTIA = {"mass": 1.0, "inertia": (0.01, 0.01, 0.01), "explicitinertial": True}
"""Placeholder inertia, which MuJoCo requires of a moving body, but kinematics does not use."""


def _chain(model: mujoco.MjModel, body: int) -> list[int]:
    bodies: list[int] = []
    while body:
        bodies.append(body)
        body = int(model.body_parentid[body])
    return bodies[::-1]


def _copy_joint(model: mujoco.MjModel, joint: int, body: mujoco.MjsBody) -> None:
    body.add_joint(
        name=model.joint(joint).name,
        type=mujoco.mjtJoint(model.jnt_type[joint]),
        pos=model.jnt_pos[joint],
        axis=model.jnt_axis[joint],
        range=model.jnt_range[joint],
        limited=mujoco.mjtLimited.mjLIMITED_TRUE,
        ref=float(model.qpos0[model.jnt_qposadr[joint]]),
    )
