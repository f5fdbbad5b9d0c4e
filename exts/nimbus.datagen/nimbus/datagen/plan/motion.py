"""Interface of motion planning, independent of the library behind it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import CubicHermiteSpline

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.trajectory import Reason
from nimbus.datagen.plan.scene import PlanningScene


class MotionStatus(StrEnum):
    """Result of a query."""

    SUCCESS = "success"
    NO_IK = "no_ik"
    """No goal pose is both reachable and free of collision."""
    NO_PATH = "no_path"
    START_IN_COLLISION = "start_in_collision"
    GOAL_IN_COLLISION = "goal_in_collision"
    OUT_OF_LIMITS = "out_of_limits"
    """The start or the goal is beyond a joint limit."""
    LINE_BLOCKED = "line_blocked"
    """A straight line is obstructed, or the arm cannot follow it."""
    REJECTED = "rejected"
    """A path was found, but none of its timed versions is free of collision."""


_REASONS = {
    MotionStatus.SUCCESS: Reason.NONE,
    MotionStatus.NO_IK: Reason.NO_IK,
    MotionStatus.NO_PATH: Reason.NO_PATH,
    MotionStatus.START_IN_COLLISION: Reason.COLLISION_AT_START,
    MotionStatus.GOAL_IN_COLLISION: Reason.NO_IK,
    MotionStatus.OUT_OF_LIMITS: Reason.NO_IK,
    MotionStatus.LINE_BLOCKED: Reason.NO_PATH,
    MotionStatus.REJECTED: Reason.PLAN_REJECTED,
}


def _none(*shape: int) -> FloatArray:
    return np.zeros(shape)


@dataclass(frozen=True, kw_only=True)
class MotionPlan:
    """Motion of the arm from rest to rest, or the reason for its absence."""

    status: MotionStatus
    detail: str = ""
    """Contact or unreachable goal, for messages."""
    time: FloatArray = field(default_factory=lambda: _none(0))
    """(N,) times from 0, one per period; N >= 2 for a success [s]."""
    positions: FloatArray = field(default_factory=lambda: _none(0, 0))
    """(N, J) commands [rad or m]; straight lines between rows are free of collision."""
    velocities: FloatArray = field(default_factory=lambda: _none(0, 0))
    """(N, J) velocities [rad/s or m/s]."""
    waypoints: FloatArray = field(default_factory=lambda: _none(0, 0))
    """(P, J) path before it was timed [rad or m]."""
    goal_index: int = -1
    """Index of the goal that was reached."""
    statistics: dict[str, float] = field(default_factory=dict)
    """``ik_time``, ``plan_time``, ``timing_time`` [s CPU], ``clearance`` [m], ``path_length`` [rad], ``checks``;
    with cuRobo also ``position_error`` [m] and ``rotation_error`` [rad]."""

    def __bool__(self) -> bool:
        """Return True for a success."""
        return self.status is MotionStatus.SUCCESS

    @property
    def reason(self) -> Reason:
        """Reason with which an attempt fails if this motion cannot be planned; ``NONE`` for a success."""
        return _REASONS[self.status]

    @property
    def duration(self) -> float:
        """Duration [s]."""
        return float(self.time[-1]) if len(self.time) else 0.0

    @property
    def clearance(self) -> float:
        """Smallest distance to anything but the robot, at most 0.05 [m]; NaN for a failure."""
        return self.statistics.get("clearance", np.nan)

    @property
    def end(self) -> FloatArray:
        """Last posture (J,) [rad or m]."""
        return self.positions[-1]

    def slowed(self, pace: float) -> MotionPlan:
        """Return the same motion at a fraction of its speed, with the same period between rows."""
        count = max(1, math.ceil((len(self.time) - 1) / pace - 1e-9))
        shape = CubicHermiteSpline(self.time, self.positions, self.velocities)
        at = np.linspace(0.0, self.duration, count + 1)
        positions = shape(at)
        positions[-1] = self.end  # interpolation rounds, and the next plan has to start exactly here
        period = self.duration / (len(self.time) - 1)
        velocities = shape(at, 1) * self.duration / (count * period)
        return replace(self, time=period * np.arange(count + 1), positions=positions, velocities=velocities)


def _no_plan() -> MotionPlan:
    return MotionPlan(status=MotionStatus.NO_IK)


@dataclass(frozen=True, kw_only=True)
class GraspPlan:
    """Motions of a pick, or the reason for their absence; ``approach`` is a free motion, the others are lines."""

    status: MotionStatus
    detail: str = ""
    """Reason for the failure of the grasp that got furthest."""
    grasp_index: int = -1
    world_T_tool: FloatArray = field(default_factory=lambda: np.eye(4))
    """(4, 4) the grasp, possibly rotated by half a turn about its approach."""
    approach: MotionPlan = field(default_factory=_no_plan)
    reach: MotionPlan = field(default_factory=_no_plan)
    lift: MotionPlan = field(default_factory=_no_plan)
    attempts: dict[str, int] = field(default_factory=dict)
    """Number of rejected grasps by phase and reason."""

    def __bool__(self) -> bool:
        """Return True for a success."""
        return self.status is MotionStatus.SUCCESS


@dataclass(frozen=True, kw_only=True)
class MotionQuery:
    """Query of a batch: from a posture to the nearest of several poses, or to another posture."""

    scene: PlanningScene
    start_q: FloatArray
    goals: tuple[FloatArray, ...] = ()
    """(4, 4) ``world_T_tool`` each; empty where ``goal_q`` is given."""
    goal_q: FloatArray | None = None
    """(J,) last posture [rad or m]."""
    rng: np.random.Generator
    velocity: FloatArray | None = None
    """(J,) limits [rad/s]; those of the planner where None."""
    acceleration: FloatArray | None = None
    """(J,) limits [rad/s^2]; those of the planner where None."""


class MotionPlanner(Protocol):
    """Planner of collision-free motions.

    Equal scenes, queries and random streams give equal motions, whatever was planned before; on a GPU they are equal
    only approximately.
    """

    def plan_pose(
        self, scene: PlanningScene, start_q: ArrayLike, goals: Sequence[ArrayLike], *, rng: np.random.Generator
    ) -> MotionPlan:
        """Plan a free motion to the nearest of several poses of the tool, each (4, 4) ``world_T_tool``."""
        ...

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
        ...

    def plan_line(
        self, scene: PlanningScene, start_q: ArrayLike, world_T_goal: ArrayLike, *, speed: float = 0.25
    ) -> MotionPlan:
        """Plan a straight motion of the tool; bodies that touch at the start may touch no deeper.

        Args:
            scene: Bodies around the arm, and the arm itself.
            start_q: (J,) first posture [rad or m].
            world_T_goal: (4, 4) ``world_T_tool`` at the end [m].
            speed: Highest speed of the tool [m/s].
        """
        ...

    def plan_curve(
        self, scene: PlanningScene, start_q: ArrayLike, poses: Sequence[ArrayLike], *, speed: float = 0.15
    ) -> MotionPlan:
        """Plan a motion of the tool through poses that follow each other closely, checked like a straight one.

        Args:
            scene: Bodies around the arm, and the arm itself.
            start_q: (J,) first posture [rad or m].
            poses: (4, 4) ``world_T_tool`` each, in their order [m].
            speed: Highest speed of the tool [m/s].
        """
        ...

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
        """Plan approach, reach and lift for the first feasible one of a body's ranked grasps, (4, 4) ``world_T_tool``.

        In each group of consecutive grasps, the one with the nearest posture is tried first; with ``in_order`` each
        grasp is tried as given and then rotated by half a turn about its approach. During the approach the gripper of
        the scene is open and must touch nothing. Contacts that ``body`` has before the lift, for example with the
        table, are allowed.
        """
        ...

    def join(self, scene: PlanningScene, plans: Sequence[MotionPlan]) -> MotionPlan:
        """Join plans, each starting where the previous one ends, into one continuous motion.

        It does not stop between them and ignores their speed limits. Contacts at the start may not deepen on the way,
        as on a line. When the joined motion is not free, the plans follow each other with stops.
        """
        ...

    def plan_batch(self, queries: Sequence[MotionQuery]) -> list[MotionPlan]:
        """Plan several independent queries."""
        ...
