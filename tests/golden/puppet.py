"""A workcell without physics: motions end at their goals, and grasped objects move with the hand.

Skills, conditions and composites run in it unchanged, in a tenth of the time, and every command is recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.trajectory import StartState
from nimbus.datagen.execute.interpreter import TaskPerformer
from nimbus.datagen.execute.workcell import SimulatedWorkcell
from nimbus.datagen.plan.motion import GraspPlan, MotionPlan, MotionQuery, MotionStatus
from nimbus.datagen.plan.scene import PlanningScene
from nimbus.datagen.simulate.newton import NewtonSimulation
from nimbus.datagen.tasks.statements import SkillFailure
from nimbus.datagen.tasks.steps import Scope, Step, Steps


class PuppetSimulation(NewtonSimulation):
    """The world of a layout, in which joints are at their commanded positions, and nothing falls."""

    def load(self, layout: Any) -> None:
        """Build the world; nothing is attached to a link."""
        self.attached: dict[str, tuple[str, FloatArray]] = {}
        super().load(layout)

    def restore(self, state: StartState) -> None:
        """Restore a state at rest; nothing is attached to a link."""
        self.attached = {}
        super().restore(state)

    def advance(self, action: FloatArray, *, observe: Callable[[], None] | None = None) -> None:
        """Move the robot to the commanded position, together with attached bodies."""
        target = action[self._action_index] * self._ratios
        self.data.qpos[self.qpos_index] = target
        mujoco.mj_kinematics(self.model, self.data)
        for name, (link, link_T_body) in self.attached.items():
            address, world_T_body = self._free_joint(name), self.body_pose(link) @ link_T_body
            wxyz = np.zeros(4)
            mujoco.mju_mat2Quat(wxyz, np.ascontiguousarray(world_T_body[:3, :3]).ravel())
            self.data.qpos[address : address + 7] = [*world_T_body[:3, 3], *wxyz]
        self.refresh()
        self._previous = self._command = self.reference = target

    def refresh(self) -> None:
        """Compute poses and contacts from the joint positions."""
        mujoco.mj_kinematics(self.model, self.data)
        mujoco.mj_comPos(self.model, self.data)
        if self.model.nflex:
            mujoco.mj_flex(self.model, self.data)
        mujoco.mj_collision(self.model, self.data)

    def attach(self, name: str, link: str) -> None:
        """Let a free body move with a link; a part with a joint does not move."""
        if self._free_joint(name) >= 0:
            self.attached[name] = link, np.linalg.inv(self.body_pose(link)) @ self.body_pose(name)

    def _free_joint(self, name: str) -> int:
        joint = int(self.model.body_jntadr[self.model.body(name).id])
        is_free = joint >= 0 and self.model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_FREE
        return int(self.model.jnt_qposadr[joint]) if is_free else -1


class PuppetPlanner:
    """Motions by inverse kinematics alone: straight from the start to the goal, ignoring obstacles."""

    def plan_pose(
        self, scene: PlanningScene, start_q: ArrayLike, goals: Sequence[ArrayLike], *, rng: np.random.Generator
    ) -> MotionPlan:
        """Plan to the first reachable goal."""
        start = np.asarray(start_q, dtype=float)
        seeds = (start, rng.uniform(*scene.arm.limits.T), rng.uniform(*scene.arm.limits.T))
        for index, goal in enumerate(goals):
            for seed in seeds:
                if (end := scene.arm.solve(np.asarray(goal, dtype=float), seed)) is not None:
                    return _plan(start, end, goal_index=index)
        return MotionPlan(status=MotionStatus.NO_IK)

    def plan_joints(
        self, scene: PlanningScene, start_q: ArrayLike, goal_q: ArrayLike, *, rng: np.random.Generator
    ) -> MotionPlan:
        """Plan to a posture."""
        return _plan(np.asarray(start_q, dtype=float), np.asarray(goal_q, dtype=float))

    def plan_line(
        self, scene: PlanningScene, start_q: ArrayLike, world_T_goal: ArrayLike, *, speed: float = 0.25
    ) -> MotionPlan:
        """Plan to a near pose."""
        start = np.asarray(start_q, dtype=float)
        end = scene.arm.solve(np.asarray(world_T_goal, dtype=float), start, iterations=60)
        return MotionPlan(status=MotionStatus.NO_PATH) if end is None else _plan(start, end)

    def plan_curve(
        self, scene: PlanningScene, start_q: ArrayLike, poses: Sequence[ArrayLike], *, speed: float = 0.15
    ) -> MotionPlan:
        """Plan to the last of some poses."""
        return self.plan_line(scene, start_q, poses[-1], speed=speed)

    def plan_grasp(
        self,
        scene: PlanningScene,
        start_q: ArrayLike,
        grasps: Sequence[ArrayLike],
        body: str,
        *,
        rng: np.random.Generator,
        approach_distance: float = 0.08,
        lift_height: float = 0.10,
        speed: float = 0.25,
        in_order: bool = False,
    ) -> GraspPlan:
        """Plan to the first reachable grasp."""
        for index, grasp in enumerate(np.asarray(one, dtype=float) for one in grasps):
            before, above = grasp.copy(), grasp.copy()
            before[:3, 3] -= approach_distance * grasp[:3, 2]
            above[2, 3] += lift_height
            if not (approach := self.plan_pose(scene, start_q, [before], rng=rng)):
                continue
            if (reach := self.plan_line(scene, approach.end, grasp)) and (
                lift := self.plan_line(scene, reach.end, above)
            ):
                return GraspPlan(
                    status=MotionStatus.SUCCESS,
                    grasp_index=index,
                    world_T_tool=grasp,
                    approach=approach,
                    reach=reach,
                    lift=lift,
                )
        return GraspPlan(status=MotionStatus.NO_IK)

    def join(self, scene: PlanningScene, plans: Sequence[MotionPlan]) -> MotionPlan:
        """Join plans to one plan, from the start of the first to the end of the last."""
        failed = [plan for plan in plans if not plan]
        return failed[0] if failed else _plan(plans[0].positions[0], plans[-1].end)

    def plan_batch(self, queries: Sequence[MotionQuery]) -> list[MotionPlan]:
        """Plan the queries one after the other."""
        return [self.plan_pose(query.scene, query.start_q, query.goals, rng=query.rng) for query in queries]


def _plan(start: FloatArray, end: FloatArray, *, goal_index: int = 0) -> MotionPlan:
    positions = np.linspace(start, end, 5)
    return MotionPlan(
        status=MotionStatus.SUCCESS,
        time=np.arange(5) / 15,
        positions=positions,
        velocities=np.zeros_like(positions),
        waypoints=np.array([start, end]),
        goal_index=goal_index,
    )


class PuppetCell(SimulatedWorkcell):
    """A workcell of a puppet simulation; ``trace`` holds skill, phase, tool pose and opening of every command."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        self.trace: list[tuple[str, str, FloatArray]] = []
        self.puppet: PuppetSimulation = args[0]
        super().__init__(*args, **settings)

    def _become(self, name: str, planner: Any) -> None:
        super()._become(name, planner)
        meter = self.meter
        meter.touching = lambda name, links: name in (meter.held, meter.closing_on)

    def follow(self, plan: MotionPlan, *, opening: float | None = None, touching: Iterable[str] = ()) -> MotionPlan:
        """Move to the end of a plan, without further checks."""
        if not plan:
            raise SkillFailure.of_plan(plan)
        self.command(plan.end, opening=opening)
        return plan

    def close_on(self, name: str, *, steps: int = 4, patience: int = 8) -> bool:
        """Attach the object between the fingers."""
        super().close_on(name, steps=1, patience=0)
        self.puppet.attach(name, self.robot.tool.link)
        return True

    def open(self, *, room: float | None = None, steps: int = 3) -> None:
        """Release the object."""
        held = self.puppet.attached
        for name in [name for name, (link, _) in held.items() if link == self.robot.tool.link]:
            del held[name]
        super().open(room=room, steps=1)

    def _advance(self) -> None:
        super()._advance()
        for arm in self.arms.values():
            skill, _, phase = arm._labels.of(arm.name)
            self.trace.append((skill, phase, np.append(arm.tool_pose()[:3].ravel(), arm.opening)))


class PuppetPerformer(TaskPerformer):
    """Continues after a failed step, unless a recovery handles the failure; ``ended`` has the end of each step."""

    def __init__(self, cell: SimulatedWorkcell, scope: Scope) -> None:
        super().__init__(cell, scope)
        self.ended: list[tuple[str, str]] = []
        self._tries = 0

    def do(self, steps: Steps, scope: Scope) -> None:
        """Perform steps one after another."""
        for step in steps:
            try:
                super().do((step,), scope)
                ending = "done"
            except SkillFailure as failure:
                ending = str(failure.reason)
                if self._tries or not isinstance(step, Step):
                    raise
            words = (step.name,) if isinstance(step, Step) else type(step).words
            self.ended.append((words[0] if words else "loop", ending))

    def attempt(self, steps: Steps, scope: Scope) -> SkillFailure | None:
        """Perform steps, and return a failure that a recovery may handle."""
        self._tries += 1
        try:
            return super().attempt(steps, scope)
        finally:
            self._tries -= 1
