"""Base of the motion planners, with lines, picks, joins and timing in the simulator's own geometry."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.plan import curve, line, pick
from nimbus.datagen.plan.motion import GraspPlan, MotionPlan, MotionQuery, MotionStatus
from nimbus.datagen.plan.path import IsFree, path_length
from nimbus.datagen.plan.scene import PlanningScene
from nimbus.datagen.plan.timing import RECORD_PERIOD, time_path


class TimedPlanner(ABC):
    """Base class that implements all of :class:`~nimbus.datagen.plan.motion.MotionPlanner` except free motions.

    Args:
        velocity_limits: (J,) limits of the hardware [rad/s].
        acceleration_limits: (J,) limits of the hardware [rad/s^2].
        velocity_scale: Fraction of the velocity limits that motions use.
        acceleration_scale: Fraction of the acceleration limits.
        period: Time between commands [s].
    """

    version: ClassVar[int] = 2
    """Version of the planner's results; a dataset is not continued with another version."""

    def __init__(
        self,
        *,
        velocity_limits: ArrayLike,
        acceleration_limits: ArrayLike,
        velocity_scale: float = 0.8,
        acceleration_scale: float = 0.5,
        period: float = RECORD_PERIOD,
    ) -> None:
        self.velocity: FloatArray = np.asarray(velocity_limits, dtype=float) * velocity_scale
        self.acceleration: FloatArray = np.asarray(acceleration_limits, dtype=float) * acceleration_scale
        self.period = period

    @abstractmethod
    def plan_pose(
        self, scene: PlanningScene, start_q: ArrayLike, goals: Sequence[ArrayLike], *, rng: np.random.Generator
    ) -> MotionPlan:
        """Plan a free motion to the nearest of several poses of the tool.

        Args:
            scene: Bodies around the arm, and the arm itself.
            start_q: (J,) first posture [rad or m].
            goals: (4, 4) ``world_T_tool`` each [m].
            rng: Stream of the planner's random draws.
        """

    @abstractmethod
    def plan_joints(
        self, scene: PlanningScene, start_q: ArrayLike, goal_q: ArrayLike, *, rng: np.random.Generator
    ) -> MotionPlan:
        """Plan a free motion to a posture.

        Args:
            scene: Bodies around the arm, and the arm itself.
            start_q: (J,) first posture [rad or m].
            goal_q: (J,) last posture [rad or m].
            rng: Stream of the planner's random draws.
        """

    @abstractmethod
    def plan_batch(self, queries: Sequence[MotionQuery]) -> list[MotionPlan]:
        """See :class:`~nimbus.datagen.plan.motion.MotionPlanner`."""

    def plan_line(
        self, scene: PlanningScene, start_q: ArrayLike, world_T_goal: ArrayLike, *, speed: float = 0.25
    ) -> MotionPlan:
        """Plan a straight motion of the tool.

        Args:
            scene: Bodies around the arm, and the arm itself.
            start_q: (J,) first posture [rad or m].
            world_T_goal: (4, 4) ``world_T_tool`` at the end [m].
            speed: Highest speed of the tool [m/s].
        """
        return line.plan_line(self, scene, np.asarray(start_q, dtype=float), world_T_goal, speed=speed)

    def plan_curve(
        self, scene: PlanningScene, start_q: ArrayLike, poses: Sequence[ArrayLike], *, speed: float = 0.15
    ) -> MotionPlan:
        """Plan a motion of the tool through poses that follow each other closely.

        Args:
            scene: Bodies around the arm, and the arm itself.
            start_q: (J,) first posture [rad or m].
            poses: (4, 4) ``world_T_tool`` each, in their order [m].
            speed: Highest speed of the tool [m/s].
        """
        return curve.plan_curve(self, scene, np.asarray(start_q, dtype=float), poses, speed=speed)

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
        """Plan approach, reach and lift for the first feasible one of several ranked grasps of a body.

        Args:
            scene: Bodies around the arm, and the arm itself.
            start_q: (J,) first posture [rad or m].
            grasps: (4, 4) ``world_T_tool`` each, best first [m].
            body: Name of the body to pick.
            rng: Stream of the planner's random draws.
            approach_distance: Length of the reach along the tool's approach [m].
            lift_height: Height of the lift [m].
            speed: Highest speed of the tool [m/s].
            in_order: True to try the grasps exactly in their order. By default, the grasp with the nearest posture
                comes first in each group of consecutive grasps.
        """
        return pick.plan_grasp(
            self,
            scene,
            np.asarray(start_q, dtype=float),
            grasps,
            body,
            rng=rng,
            approach_distance=approach_distance,
            lift_height=lift_height,
            speed=speed,
            in_order=in_order,
        )

    def join(self, scene: PlanningScene, plans: Sequence[MotionPlan]) -> MotionPlan:
        """See :class:`~nimbus.datagen.plan.motion.MotionPlanner`."""
        return line.join_plans(self, scene, plans)

    def time(
        self,
        waypoints: FloatArray,
        is_free: IsFree,
        *,
        spent: dict[str, float],
        min_duration: float = 0.0,
        goal_index: int = 0,
    ) -> MotionPlan:
        """Time a path whose edges are free, and check its commands.

        Args:
            waypoints: (P, J) postures of the path [rad or m].
            is_free: Predicate of a posture (J,) [rad or m]: true where the arm is free.
            spent: Statistics of the query so far.
            min_duration: Smallest duration of the motion [s].
            goal_index: Index of the goal that the path reaches.
        """
        begin = time.process_time()
        motion = time_path(
            waypoints, self.velocity, self.acceleration, self.period, is_free=is_free, min_duration=min_duration
        )
        statistics = spent | {"timing_time": time.process_time() - begin, "path_length": path_length(waypoints)}
        if motion is None:
            return MotionPlan(status=MotionStatus.REJECTED, waypoints=waypoints, statistics=statistics)
        return MotionPlan(
            status=MotionStatus.SUCCESS,
            time=motion.time,
            positions=motion.positions,
            velocities=motion.velocities,
            waypoints=waypoints,
            goal_index=goal_index,
            statistics=statistics,
        )
