"""Planner ``curobo``, which plans free motions with cuRobo V2 on a GPU, and all others like the default planner.

cuRobo's results are never used directly: the motion is timed at our limits, and its commands are checked in the
simulator's own geometry, because spheres only approximate the robot and cuRobo has reported colliding motions.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.plan.batch import BatchPlanner
from nimbus.datagen.plan.curobo.process import curobo_process
from nimbus.datagen.plan.curobo.retime import retime
from nimbus.datagen.plan.curobo.robot import ATTACHED, TOOL, RobotModel, describe_robot, hanging_spheres
from nimbus.datagen.plan.curobo.world import CuroboWorld, describe_world, pose_vector
from nimbus.datagen.plan.motion import MotionPlan, MotionQuery, MotionStatus
from nimbus.datagen.plan.path import path_length, thin_path
from nimbus.datagen.plan.scene import PlanningScene
from nimbus.datagen.plan.verify import first_collision
from nimbus.datagen.registry import register

GOALS = 20
"""Number of poses in a goal set. All sets have this size, because cuRobo builds a separate planner for each size.

Warp unrolls loops of up to 16 iterations; the unrolled loop over 16 goals takes 14 times as long to compile as a loop
over 20 goals."""
BATCH = 8
"""Number of queries in a batch, fixed for the same reason."""
SINGLES = 4
"""Number of poses that are tried one by one after their set failed; for a single pose, cuRobo also searches a graph."""
END_DISTANCE, END_ANGLE = 0.003, 0.02
"""Largest distance of a motion's end from its goal [m], [rad]."""
_START_DISTANCE = 1e-3
"""Largest distance of a motion's start from the start posture [rad]; cuRobo computes in single precision."""


@dataclass(frozen=True, kw_only=True)
class _Problem:
    """A query in the form in which it is sent to cuRobo's process."""

    query: MotionQuery
    robot: RobotModel
    world: CuroboWorld
    attached: FloatArray

    @property
    def slots(self) -> int:
        """Number of goals of the cuRobo planner for this query: one, or a whole set."""
        return GOALS if len(self.query.goals) > 1 else 1

    @property
    def kind(self) -> tuple[str, str, bool, int]:
        """Key of the queries that one request can hold: their worlds and attached spheres may differ."""
        return self.robot.urdf, repr(self.robot.config), self.query.goal_q is None, self.slots


@register("planner", "curobo")
class CuroboPlanner(BatchPlanner):
    """Planner of free motions with cuRobo; its arguments are those of :class:`~nimbus.datagen.plan.batch.BatchPlanner`.

    Every query, even a single one, is first planned in a batch. A query that fails there is planned again alone, where
    cuRobo also searches a graph. cuRobo draws its own random numbers, from a seed that is reset before each request:
    the random streams of the queries are not used, and motions may differ on another device or driver.
    """

    version = 4
    batch_size = BATCH

    def plan_batch(self, queries: Sequence[MotionQuery]) -> list[MotionPlan]:
        """Plan queries at once, each in its own world with its own held object."""
        plans = [self._refuse(query) for query in queries]
        kinds: dict[tuple[str, str, bool, int], list[tuple[int, _Problem]]] = {}
        for index, query in enumerate(queries):
            if plans[index] is None:
                problem = self._problem(query)
                kinds.setdefault(problem.kind, []).append((index, problem))
        for members in kinds.values():
            for first in range(0, len(members), BATCH):
                some = [member for member in members[first : first + BATCH] if len(member[1].query.goals) <= GOALS]
                found = self._ask([problem for _, problem in some], batch=BATCH) if some else []
                for (index, _), plan in zip(some, found, strict=True):
                    plans[index] = plan or None
            for index, problem in members:
                if plans[index] is None:
                    plans[index] = self._plan_alone(problem)
        return [plan for plan in plans if plan is not None]

    def _refuse(self, query: MotionQuery) -> MotionPlan | None:
        """Return the failed plan of a query with an invalid posture."""
        refused = refuse(query.scene, np.asarray(query.start_q, dtype=float))
        if refused is None and query.goal_q is not None:
            refused = refuse(query.scene, query.goal_q, is_goal=True)
        return refused

    def _plan_alone(self, problem: _Problem) -> MotionPlan:
        """Return the first successful plan over subsets of the goals, or the failure at the latest stage."""
        goals = problem.query.goals
        if problem.query.goal_q is not None:
            return self._ask([problem], batch=1)[0]
        best = MotionPlan(status=MotionStatus.NO_IK)
        for chosen in _subsets(len(goals)):
            part = replace(problem, query=replace(problem.query, goals=tuple(goals[index] for index in chosen)))
            (plan,) = self._ask([part], batch=1)
            if plan:
                return replace(plan, goal_index=chosen[plan.goal_index])
            best = max(best, plan, key=lambda one: _NEARNESS.index(one.status))
        return best

    def _problem(self, query: MotionQuery) -> _Problem:
        parts = query.scene.parts()
        velocity = self.velocity if query.velocity is None else query.velocity
        acceleration = self.acceleration if query.acceleration is None else query.acceleration
        robot = describe_robot(parts, home=query.scene.home, velocity=velocity, acceleration=acceleration)
        return _Problem(query=query, robot=robot, world=describe_world(parts), attached=hanging_spheres(parts))

    def _ask(self, problems: list[_Problem], *, batch: int) -> list[MotionPlan]:
        """Send one request with queries of one kind."""
        first, worlds = problems[0], list({problem.world.key: problem.world for problem in problems}.values())
        keys = [world.key for world in worlds]
        header = {
            "robot": {"urdf": first.robot.urdf, "config": first.robot.config, "joints": list(first.robot.joints)},
            "tool": TOOL,
            "attached": ATTACHED,
            "worlds": [{"key": world.key, "mesh_names": list(world.mesh_names)} for world in worlds],
            "world_of": [keys.index(problem.world.key) for problem in problems],
            "batch": batch,
            "goal_slots": first.slots,
        }
        arrays = {"starts": np.array([problem.query.start_q for problem in problems], dtype=float)}
        arrays |= {f"attached{row}": problem.attached for row, problem in enumerate(problems)}
        for number, world in enumerate(worlds):
            arrays |= _world_arrays(number, world)
        if first.query.goal_q is not None:
            arrays["goal_joints"] = np.array([problem.query.goal_q for problem in problems], dtype=float)
        else:
            arrays["goal_poses"] = np.array([_filled(problem.query.goals, first.slots) for problem in problems])
        answer, found = curobo_process().ask(header, arrays)
        plans: list[MotionPlan] = []
        for row, (problem, told) in enumerate(zip(problems, answer["queries"], strict=True)):
            if told["status"] != "success":
                plans.append(MotionPlan(status=MotionStatus(told["status"])))
                continue
            goal = min(int(told["goal_index"]), max(0, len(problem.query.goals) - 1))
            plan = self._finish(problem.query, goal, found[f"positions{row}"], float(answer["step"]))
            times = {"plan_time": "time", "world_time": "world_time", "call_time": "call_time"}
            spent = {name: float(answer.get(key, 0.0)) / len(problems) for name, key in times.items()}
            spent |= {name: told[name] for name in ("position_error", "rotation_error") if name in told}
            plan.statistics.update(spent)
            plans.append(plan)
        return plans

    def _finish(self, query: MotionQuery, goal: int, positions: FloatArray, step: float) -> MotionPlan:
        """Time a trajectory and check its commands."""
        begin, positions, scene = time.process_time(), np.array(positions), query.scene
        start = np.asarray(query.start_q, dtype=float)
        if len(positions) < 2 or np.abs(positions[0] - start).max() > _START_DISTANCE:
            return MotionPlan(status=MotionStatus.REJECTED, detail="does not begin at the arm's posture")
        positions[0] = start
        if query.goal_q is not None:
            if np.abs(positions[-1] - query.goal_q).max() > END_ANGLE:
                return MotionPlan(status=MotionStatus.REJECTED, detail="does not end at the goal posture")
            positions[-1] = query.goal_q
        elif miss := _miss(scene.tool_pose(positions[-1]), query.goals[goal]):
            return MotionPlan(status=MotionStatus.REJECTED, detail=miss)
        velocity = self.velocity if query.velocity is None else query.velocity
        acceleration = self.acceleration if query.acceleration is None else query.acceleration
        motion = retime(positions, step, velocity=velocity, acceleration=acceleration, period=self.period)
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
            goal_index=goal,
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
"""Results in the order of the stage at which planning ended, earliest first."""


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
    """Yield indices of goals to request together: sets that cover all of them, then the first few one by one."""
    for first in range(0, count, GOALS):
        yield list(range(first, min(first + GOALS, count)))
    if count > 1:
        yield from ([index] for index in range(min(count, SINGLES)))


def _filled(poses: Sequence[FloatArray], slots: int) -> FloatArray:
    """Return (slots, 7) poses, with the last one repeated."""
    vectors = [pose_vector(pose) for pose in poses]
    return np.array(vectors + vectors[-1:] * (slots - len(vectors)))


def _world_arrays(number: int, world: CuroboWorld) -> dict[str, NDArray[Any]]:
    """Return the arrays of a request's world, with its number in their names."""
    arrays: dict[str, NDArray[Any]] = {
        f"box_poses{number}": world.box_poses,
        f"box_sizes{number}": world.box_sizes,
        f"mesh_poses{number}": world.mesh_poses,
    }
    arrays |= {f"vertices{number}_{index}": vertices for index, vertices in enumerate(world.mesh_vertices)}
    return arrays | {f"faces{number}_{index}": faces for index, faces in enumerate(world.mesh_faces)}


def _miss(reached: FloatArray, goal: FloatArray) -> str:
    """Describe the error of a pose when it is too large."""
    distance = float(np.linalg.norm(reached[:3, 3] - goal[:3, 3]))
    cosine = 0.5 * (np.trace(reached[:3, :3].T @ goal[:3, :3]) - 1.0)
    angle = float(np.arccos(np.clip(cosine, -1.0, 1.0)))
    if distance <= END_DISTANCE and angle <= END_ANGLE:
        return ""
    return f"ends {distance * 1e3:.1f} mm and {angle:.3f} rad from its goal"
