"""Planner ``curobo``: free motions by cuRobo V2 on a GPU, everything else as in the default planner.

cuRobo's results are never used directly: the motion is timed at our limits, and its commands are checked in the
simulator's own geometry, because spheres only approximate the robot and cuRobo has reported colliding motions.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.plan.curobo.process import curobo_process
from nimbus.datagen.plan.curobo.retime import retime
from nimbus.datagen.plan.curobo.robot import ATTACHED, TOOL, RobotModel, describe_robot, hanging_spheres
from nimbus.datagen.plan.curobo.world import CuroboWorld, describe_world, pose_vector
from nimbus.datagen.plan.motion import MotionPlan, MotionQuery, MotionStatus
from nimbus.datagen.plan.path import path_length, thin_path
from nimbus.datagen.plan.scene import PlanningScene
from nimbus.datagen.plan.timed import TimedPlanner
from nimbus.datagen.plan.verify import first_collision
from nimbus.datagen.registry import register

GOALS = 16
"""Number of poses in a goal set; cuRobo builds a planner for a size, so all sets have this one."""
BATCH = 8
"""Number of queries in a batch, fixed for the same reason."""
SINGLES = 4
"""Number of poses that are tried singly after their set failed; for a single pose cuRobo also searches a graph."""
END_DISTANCE, END_ANGLE = 0.003, 0.02
"""Largest distance of a motion's end from its goal [m], [rad]."""
_START_DISTANCE = 1e-3
"""Largest distance of a motion's start from the start posture [rad]; cuRobo computes in single precision."""


@dataclass(frozen=True, kw_only=True)
class _Task:
    """Context of one request to cuRobo's process."""

    scene: PlanningScene
    robot: RobotModel
    world: CuroboWorld
    attached: FloatArray

    @property
    def key(self) -> tuple[str, str, str, bytes]:
        return self.robot.urdf, repr(self.robot.config), self.world.key, self.attached.tobytes()


@register("planner", "curobo")
class CuroboPlanner(TimedPlanner):
    """Plans free motions with cuRobo; arguments as in :class:`~nimbus.datagen.plan.timed.TimedPlanner`.

    cuRobo draws its own random numbers from a seed that is set back before each query: the streams that the queries
    bring are not used, and on another device or driver the motions may differ.
    """

    def plan_pose(
        self, scene: PlanningScene, start_q: ArrayLike, goals: Sequence[ArrayLike], *, rng: np.random.Generator
    ) -> MotionPlan:
        """Plan a free motion to the nearest of some poses of the tool.

        Args:
            scene: Bodies around the arm, and the arm itself.
            start_q: (J,) first posture [rad or m].
            goals: (4, 4) ``world_T_tool`` each [m].
            rng: Not used: cuRobo draws its own numbers.
        """
        start, poses = np.asarray(start_q, dtype=float), [np.asarray(goal, dtype=float) for goal in goals]
        refused = refuse(scene, start)
        if refused is not None:
            return refused
        return self._first(scene, start, poses, _subsets(len(poses)))

    def plan_joints(
        self, scene: PlanningScene, start_q: ArrayLike, goal_q: ArrayLike, *, rng: np.random.Generator
    ) -> MotionPlan:
        """Plan a free motion to a posture.

        Args:
            scene: Bodies around the arm, and the arm itself.
            start_q: (J,) first posture [rad or m].
            goal_q: (J,) last posture [rad or m].
            rng: Not used: cuRobo draws its own numbers.
        """
        start, goal = np.asarray(start_q, dtype=float), np.asarray(goal_q, dtype=float)
        for refused in (refuse(scene, start), refuse(scene, goal, is_goal=True)):
            if refused is not None:
                return refused
        task = self._task(scene)
        (plan,) = self._ask(task, np.array([start]), goal_joints=np.array([goal]))
        return plan

    def plan_batch(self, queries: Sequence[MotionQuery]) -> list[MotionPlan]:
        """Plan queries in one world with the same held object at once, the others in sequence.

        A query that fails in a batch is retried on its own.
        """
        plans: list[MotionPlan | None] = [None] * len(queries)
        groups: dict[tuple[object, ...], list[int]] = {}
        tasks: dict[tuple[object, ...], _Task] = {}
        for index, query in enumerate(queries):
            plans[index] = refuse(query.scene, np.asarray(query.start_q, dtype=float))
            if plans[index] is None and len(query.goals) <= GOALS:
                task = self._task(query.scene)
                key = (*task.key, len(query.goals) == 1)
                groups.setdefault(key, []).append(index)
                tasks.setdefault(key, task)
        for key, members in groups.items():
            for first in range(0, len(members), BATCH):
                some = members[first : first + BATCH]
                if len(some) > 1:
                    starts = np.array([queries[index].start_q for index in some], dtype=float)
                    goals = [[np.asarray(goal, dtype=float) for goal in queries[index].goals] for index in some]
                    for index, plan in zip(some, self._ask(tasks[key], starts, goals=goals), strict=True):
                        plans[index] = plan if plan else None
        return [
            plan if plan is not None else self.plan_pose(query.scene, query.start_q, query.goals, rng=query.rng)
            for plan, query in zip(plans, queries, strict=True)
        ]

    def _first(
        self, scene: PlanningScene, start: FloatArray, poses: list[FloatArray], subsets: Iterator[list[int]]
    ) -> MotionPlan:
        """Return the first success over some goal sets, or the failure that came nearest to one."""
        best = MotionPlan(status=MotionStatus.NO_IK)
        task = self._task(scene)
        for chosen in subsets:
            goals = [poses[index] for index in chosen]
            (plan,) = self._ask(task, np.array([start]), goals=[goals], names=[chosen])
            if plan:
                return plan
            best = max(best, plan, key=lambda one: _NEARNESS.index(one.status))
        return best

    def _task(self, scene: PlanningScene) -> _Task:
        parts = scene.parts()
        robot = describe_robot(parts, home=scene.home, velocity=self.velocity, acceleration=self.acceleration)
        return _Task(scene=scene, robot=robot, world=describe_world(parts), attached=hanging_spheres(parts))

    def _ask(
        self,
        task: _Task,
        starts: FloatArray,
        *,
        goals: list[list[FloatArray]] | None = None,
        names: list[list[int]] | None = None,
        goal_joints: FloatArray | None = None,
    ) -> list[MotionPlan]:
        """Send one request; ``names`` are the callers' indices of each query's goals."""
        world, robot = task.world, task.robot
        slots = 1 if goals is None or all(len(some) == 1 for some in goals) else GOALS
        header = {
            "robot": {"urdf": robot.urdf, "config": robot.config, "joints": list(robot.joints)},
            "tool": TOOL,
            "attached": ATTACHED,
            "world": world.key,
            "mesh_names": list(world.mesh_names),
            "batch": 1 if len(starts) == 1 else BATCH,
            "goal_slots": slots,
        }
        arrays = {
            "starts": starts,
            "attached": task.attached,
            "box_poses": world.box_poses,
            "box_sizes": world.box_sizes,
            "mesh_poses": world.mesh_poses,
        }
        arrays |= {f"vertices{index}": vertices for index, vertices in enumerate(world.mesh_vertices)}
        arrays |= {f"faces{index}": faces for index, faces in enumerate(world.mesh_faces)}
        if goal_joints is not None:
            arrays["goal_joints"] = goal_joints
        else:
            assert goals is not None
            arrays["goal_poses"] = np.array([_filled(some, slots) for some in goals])
        answer, found = curobo_process().ask(header, arrays)
        plans: list[MotionPlan] = []
        for index, (start, told) in enumerate(zip(starts, answer["queries"], strict=True)):
            if told["status"] != "success":
                plans.append(MotionPlan(status=MotionStatus(told["status"])))
                continue
            goal = min(int(told["goal_index"]), len(goals[index]) - 1) if goals is not None else 0
            end = goal_joints[index] if goal_joints is not None else None
            pose = goals[index][goal] if goals is not None else None
            plan = self._finish(
                task.scene, start, found[f"positions{index}"], float(answer["step"]), end=end, pose=pose
            )
            spent = {"plan_time": float(answer.get("time", 0.0)) / len(starts)}
            spent |= {name: told[name] for name in ("position_error", "rotation_error") if name in told}
            plan.statistics.update(spent)
            plans.append(_with_goal(plan, names[index][goal] if names else goal))
        return plans

    def _finish(
        self,
        scene: PlanningScene,
        start: FloatArray,
        positions: FloatArray,
        step: float,
        *,
        end: FloatArray | None,
        pose: FloatArray | None,
    ) -> MotionPlan:
        """Time a trajectory and check its commands."""
        begin, positions = time.process_time(), np.array(positions)
        if len(positions) < 2 or np.abs(positions[0] - start).max() > _START_DISTANCE:
            return MotionPlan(status=MotionStatus.REJECTED, detail="does not begin where the arm is")
        positions[0] = start
        if end is not None:
            if np.abs(positions[-1] - end).max() > END_ANGLE:
                return MotionPlan(status=MotionStatus.REJECTED, detail="ends in another posture")
            positions[-1] = end
        elif pose is not None and (miss := _miss(scene.tool_pose(positions[-1]), pose)):
            return MotionPlan(status=MotionStatus.REJECTED, detail=miss)
        motion = retime(positions, step, velocity=self.velocity, acceleration=self.acceleration, period=self.period)
        waypoints = thin_path(positions)
        if not all(map(scene.within_limits, motion.positions)):
            return MotionPlan(status=MotionStatus.REJECTED, detail="leaves the joint limits", waypoints=waypoints)
        if collision := first_collision(scene, motion.positions):
            return MotionPlan(status=MotionStatus.REJECTED, detail=str(collision), waypoints=waypoints)
        statistics = {
            "timing_time": time.process_time() - begin,
            "clearance": scene.clearance_along(motion.positions),
            "path_length": path_length(waypoints),
        }
        return MotionPlan(
            status=MotionStatus.SUCCESS,
            time=motion.time,
            positions=motion.positions,
            velocities=motion.velocities,
            waypoints=waypoints,
            goal_index=0,
            statistics=statistics,
        )


_NEARNESS = (
    MotionStatus.OUT_OF_LIMITS,
    MotionStatus.START_IN_COLLISION,
    MotionStatus.GOAL_IN_COLLISION,
    MotionStatus.LINE_BLOCKED,
    MotionStatus.NO_IK,
    MotionStatus.NO_PATH,
    MotionStatus.REJECTED,
    MotionStatus.SUCCESS,
)
"""Failures, ordered by the progress before them."""


def refuse(scene: PlanningScene, q: FloatArray, *, is_goal: bool = False) -> MotionPlan | None:
    """Return the failed plan for an invalid posture, which cuRobo would reject without a reason.

    Args:
        scene: Bodies around the arm, and the arm itself, in the simulator's geometry.
        q: (J,) the posture [rad or m].
        is_goal: True for the end of a motion, False for its start.

    Returns:
        A failed plan, or ``None`` when the posture is within its limits and touches nothing.
    """
    if not scene.within_limits(q):
        return MotionPlan(status=MotionStatus.OUT_OF_LIMITS, detail=np.array2string(q, precision=3))
    with scene.nearer(0.0):
        touching = scene.first_contact(q)
    if touching is None:
        return None
    status = MotionStatus.GOAL_IN_COLLISION if is_goal else MotionStatus.START_IN_COLLISION
    return MotionPlan(status=status, detail=" touches ".join(touching))


def _subsets(count: int) -> Iterator[list[int]]:
    """Yield sets of goals to request: all of them, then the first few singly."""
    for first in range(0, count, GOALS):
        yield list(range(first, min(first + GOALS, count)))
    if count > 1:
        yield from ([index] for index in range(min(count, SINGLES)))


def _filled(poses: list[FloatArray], slots: int) -> FloatArray:
    """Return (slots, 7) poses, with the last one repeated."""
    vectors = [pose_vector(pose) for pose in poses]
    return np.array(vectors + vectors[-1:] * (slots - len(vectors)))


def _with_goal(plan: MotionPlan, goal: int) -> MotionPlan:
    return replace(plan, goal_index=goal) if plan else plan


def _miss(reached: FloatArray, goal: FloatArray) -> str:
    """Describe the error of a pose when it is too large."""
    distance = float(np.linalg.norm(reached[:3, 3] - goal[:3, 3]))
    cosine = 0.5 * (np.trace(reached[:3, :3].T @ goal[:3, :3]) - 1.0)
    angle = float(np.arccos(np.clip(cosine, -1.0, 1.0)))
    if distance <= END_DISTANCE and angle <= END_ANGLE:
        return ""
    return f"ends {distance * 1e3:.1f} mm and {angle:.3f} rad from its goal"
