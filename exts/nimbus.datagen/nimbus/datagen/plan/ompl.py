"""Default motion planner, with mink for postures, OMPL for paths, TOPP-RA for timing, and MuJoCo for collisions."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from ompl import base, geometric, util

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.plan.ik import solve_ik
from nimbus.datagen.plan.motion import MotionPlan, MotionQuery, MotionStatus
from nimbus.datagen.plan.path import edge_is_free, reduce_path, shortcut_path
from nimbus.datagen.plan.scene import PlanningScene
from nimbus.datagen.plan.timed import TimedPlanner
from nimbus.datagen.plan.timing import RECORD_PERIOD
from nimbus.datagen.registry import register

EDGE_STEP = 0.03
"""Distance between collision checks on an edge [rad]; with the scene's margin it misses no relevant collision."""

RANGE = 0.7
"""Longest edge of a search tree [rad]."""
Goal = tuple[int, FloatArray]
"""Index of a goal pose, and a posture that reaches it."""

NEARLY_AS_NEAR = 1.3
"""Goals within this factor of the nearest goal's distance are tried before the others."""


def sample_path(
    scene: PlanningScene,
    start: FloatArray,
    goals: list[FloatArray],
    *,
    planner: str,
    seed: int,
    max_checks: int,
    edge_step: float = EDGE_STEP,
) -> FloatArray | None:
    """Search for a path from a free posture to any of several free goals.

    Args:
        scene: Scene with the arm.
        start: (J,) start posture [rad or m].
        goals: Goal postures, each (J,); the path ends in exactly one of them.
        planner: Name of one of OMPL's geometric planners.
        seed: Seed of the search.
        max_checks: Largest number of collision checks.
        edge_step: Distance between checks on an edge [rad].

    Returns:
        (P, J) corners of a path, or ``None``.
    """
    # OMPL would wait forever for a valid goal.
    if any(scene.in_collision(q) or not scene.within_limits(q) for q in (start, *goals)):
        raise ValueError("the start and all goals of a search must be free and within the joint limits")
    util.setLogLevel(util.LOG_NONE)
    # Planner objects take their seeds from this generator when they are built.
    util.RNG.setSeed(seed)
    joints = range(len(start))
    space = base.RealVectorStateSpace(len(start))
    bounds = base.RealVectorBounds(len(start))
    for joint, (low, high) in enumerate(scene.limits):
        # Postures at a limit may exceed it by a rounding error.
        bounds.setLow(joint, float(low) - 1e-5)
        bounds.setHigh(joint, float(high) + 1e-5)
    space.setBounds(bounds)
    information = base.SpaceInformation(space)

    def is_free(state: Any) -> bool:
        return not scene.in_collision([state[j] for j in joints])

    information.setStateValidityChecker(is_free)
    information.setStateValidityCheckingResolution(edge_step / space.getMaximumExtent())
    information.setup()

    problem = base.ProblemDefinition(information)
    problem.addStartState(_state(space, start))
    targets = base.GoalStates(information)
    for goal in goals:
        targets.addState(_state(space, goal))
    problem.setGoal(targets)
    search = getattr(geometric, planner)(information)
    search.setProblemDefinition(problem)
    search.setRange(RANGE)
    search.setup()
    last = scene.check_count + max_checks
    # Checks are counted instead of seconds, so that the result does not depend on the machine's load.
    search.solve(base.PlannerTerminationCondition(lambda: scene.check_count >= last))
    if not problem.hasExactSolution():
        return None
    path: Any = problem.getSolutionPath()
    return np.array([[state[j] for j in joints] for state in path.getStates()])


def _state(space: base.RealVectorStateSpace, q: FloatArray) -> Any:
    state: Any = space.allocState()
    for joint, value in enumerate(q):
        state[joint] = float(value)
    return state


@register("planner", "ompl")
class OmplPlanner(TimedPlanner):
    """Planner that plans one query at a time on the CPU, with limits on iterations and never on time.

    Args:
        velocity_limits: As in :class:`~nimbus.datagen.plan.timed.TimedPlanner`, like the next four.
        acceleration_limits: (J,) [rad/s^2].
        velocity_scale: Fraction of the velocity limits.
        acceleration_scale: Fraction of the acceleration limits.
        period: Time between commands [s].
        goal_count: Largest number of goal postures, over all goal poses.
        shortcuts: Number of attempts to shorten a path.
        max_checks: Collision checks of RRTConnect; LBKPIECE1, the fallback, has three times as many.
    """

    def __init__(
        self,
        *,
        velocity_limits: ArrayLike,
        acceleration_limits: ArrayLike,
        velocity_scale: float = 0.8,
        acceleration_scale: float = 0.5,
        period: float = RECORD_PERIOD,
        goal_count: int = 3,
        shortcuts: int = 30,
        max_checks: int = 20_000,
    ) -> None:
        super().__init__(
            velocity_limits=velocity_limits,
            acceleration_limits=acceleration_limits,
            velocity_scale=velocity_scale,
            acceleration_scale=acceleration_scale,
            period=period,
        )
        self._goal_count, self._shortcuts, self._max_checks = goal_count, shortcuts, max_checks

    def plan_pose(
        self, scene: PlanningScene, start_q: ArrayLike, goals: Sequence[ArrayLike], *, rng: np.random.Generator
    ) -> MotionPlan:
        """See :class:`~nimbus.datagen.plan.motion.MotionPlanner`.

        Args:
            scene: The scene to plan in.
            start_q: (J,) posture to start from [rad or m].
            goals: Poses of the tool, each ``world_T_tool`` (4, 4), translation in [m].
            rng: Random stream of the query.
        """
        start, begin = np.asarray(start_q, dtype=float), time.process_time()
        postures = self._postures(scene, start, goals, rng)
        ik_time = time.process_time() - begin
        if not postures:
            return MotionPlan(status=MotionStatus.NO_IK, statistics={"ik_time": ik_time})
        return self._plan(scene, start, postures, rng, ik_time=ik_time)

    def plan_joints(
        self, scene: PlanningScene, start_q: ArrayLike, goal_q: ArrayLike, *, rng: np.random.Generator
    ) -> MotionPlan:
        """See :class:`~nimbus.datagen.plan.motion.MotionPlanner`.

        Args:
            scene: The scene to plan in.
            start_q: (J,) posture to start from [rad or m].
            goal_q: (J,) posture to reach [rad or m].
            rng: Random stream of the query.
        """
        return self._plan(scene, np.asarray(start_q, dtype=float), [(0, np.asarray(goal_q, dtype=float))], rng)

    def plan_batch(self, queries: Sequence[MotionQuery]) -> list[MotionPlan]:
        """See :class:`~nimbus.datagen.plan.motion.MotionPlanner`."""
        return [self.plan_pose(query.scene, query.start_q, query.goals, rng=query.rng) for query in queries]

    def _postures(
        self, scene: PlanningScene, start: FloatArray, goals: Sequence[ArrayLike], rng: np.random.Generator
    ) -> list[Goal]:
        """Return free postures for the goal poses, the nearest to the start first."""
        found: list[Goal] = []
        # At first each pose gets a single try, because unreachable poses cost most: every restart fails.
        for restarts in (0, 4, 12, 48):
            if not found:
                each = max(1, self._goal_count // len(goals)) if restarts else 1
                found = [
                    (index, q)
                    for index, goal in enumerate(goals)
                    for q in solve_ik(scene, goal, seed_q=start, rng=rng, solutions=each, restarts=restarts)
                ]
        return sorted(found, key=lambda goal: float(np.linalg.norm(goal[1] - start)))

    def _plan(
        self,
        scene: PlanningScene,
        start: FloatArray,
        goals: list[Goal],
        rng: np.random.Generator,
        *,
        ik_time: float = 0.0,
    ) -> MotionPlan:
        for q in (start, goals[0][1]):
            if not scene.within_limits(q):
                return MotionPlan(status=MotionStatus.OUT_OF_LIMITS, detail=np.array2string(q, precision=3))
        checks, begin = scene.check_count, time.process_time()
        with _starting_at(scene, start):
            if scene.in_collision(start):
                return _blocked(MotionStatus.START_IN_COLLISION, scene, start)
            free = [(index, q) for index, q in goals if scene.within_limits(q) and not scene.in_collision(q)]
            if not free:
                return _blocked(MotionStatus.GOAL_IN_COLLISION, scene, goals[0][1])
            plan = MotionPlan(status=MotionStatus.NO_PATH)
            # When a timed path is in collision, two checks of the search lay on both sides of an obstacle: the step is
            # refined.
            for step in (EDGE_STEP, EDGE_STEP / 2, EDGE_STEP / 4):
                path = self._search(scene, start, [q for _, q in free], rng, step)
                if path is None:
                    break
                index = next(index for index, q in free if np.array_equal(q, path[-1]))
                spent = {"ik_time": ik_time, "plan_time": time.process_time() - begin}
                # Half of the margin is reserved for motion between the checks and for blended corners.
                with scene.nearer(0.5 * scene.margin):
                    plan = self.time(path, lambda q: not scene.in_collision(q), goal_index=index, spent=spent)
                if plan:
                    break
        if plan:
            plan.statistics["clearance"] = scene.clearance_along(plan.positions)
        plan.statistics["checks"] = scene.check_count - checks
        return plan

    def _search(
        self, scene: PlanningScene, start: FloatArray, goals: list[FloatArray], rng: np.random.Generator, step: float
    ) -> FloatArray | None:
        """Try a straight edge to a goal, then a sampled path, near goals first; corners are cut where free."""

        def is_free(q: FloatArray) -> bool:
            """Return True if a posture (J,) [rad or m] is free of collision."""
            return not scene.in_collision(q)

        least = min(float(np.linalg.norm(goal - start)) for goal in goals)
        near = [goal for goal in goals if np.linalg.norm(goal - start) <= NEARLY_AS_NEAR * least]
        # The first search considers only near goals, with a quarter of the budget; the second all goals, with all of
        # it. The slower planner, which finds narrow passages, comes last.
        for targets, name, max_checks in (
            (near, "RRTConnect", self._max_checks // 4),
            (goals, "RRTConnect", self._max_checks),
            (goals, "LBKPIECE1", 3 * self._max_checks),
        ):
            for goal in targets:
                if edge_is_free(start, goal, is_free, step=step):
                    return np.array([start, goal])
            # Each search has its own seed, so that a repeated search explores differently.
            seed = int(rng.integers(1, 2**31))
            path = sample_path(scene, start, targets, planner=name, seed=seed, max_checks=max_checks, edge_step=step)
            if path is not None:
                path = reduce_path(path, is_free, step=step)
                path = shortcut_path(path, is_free, rng=rng, attempts=self._shortcuts, step=step)
                return reduce_path(path, is_free, step=step)
        return None


def _blocked(status: MotionStatus, scene: PlanningScene, q: FloatArray) -> MotionPlan:
    return MotionPlan(status=status, detail=" touches ".join(scene.first_contact(q) or ()))


@contextmanager
def _starting_at(scene: PlanningScene, start: FloatArray) -> Iterator[None]:
    """Lower the margin for this query when the start is closer to an obstacle than the margin, but not in contact."""
    distance = min(scene.contacts(start).values(), default=scene.margin)
    if 0.0 < distance < scene.margin:
        with scene.nearer(0.5 * distance):
            yield
    else:
        yield
