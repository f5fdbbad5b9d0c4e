"""What motion planning is asked and what it answers, whatever library does it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.trajectory import Reason
from nimbus.datagen.plan.scene import PlanningScene


class MotionStatus(StrEnum):
    """How a query ended."""

    SUCCESS = "success"
    NO_IK = "no_ik"
    """No goal pose is within reach and free of collision."""
    NO_PATH = "no_path"
    START_IN_COLLISION = "start_in_collision"
    GOAL_IN_COLLISION = "goal_in_collision"
    OUT_OF_LIMITS = "out_of_limits"
    """The start or the goal is beyond a joint limit."""
    LINE_BLOCKED = "line_blocked"
    """Something is in the way of a straight line, or the arm cannot follow it."""
    REJECTED = "rejected"
    """A path was found, but no timing of it is free of collision."""


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
    """A motion of the arm from rest to rest, or why there is none."""

    status: MotionStatus
    detail: str = ""
    """For people: what is in contact, what is out of reach."""
    time: FloatArray = field(default_factory=lambda: _none(0))
    """(N,) [s], from 0, every period; N >= 2 of a success"""
    positions: FloatArray = field(default_factory=lambda: _none(0, 0))
    """(N, J) commands; a straight line between rows is free of collision"""
    velocities: FloatArray = field(default_factory=lambda: _none(0, 0))
    """(N, J)"""
    waypoints: FloatArray = field(default_factory=lambda: _none(0, 0))
    """(P, J) the path before it was timed"""
    goal_index: int = -1
    """Which of the goals was reached."""
    statistics: dict[str, float] = field(default_factory=dict)
    """``ik_time``, ``plan_time``, ``timing_time`` [s CPU], ``clearance`` [m], ``path_length`` [rad], ``checks``;
    of cuRobo also ``position_error`` [m] and ``rotation_error`` [rad]."""

    def __bool__(self) -> bool:
        """Whether it succeeded."""
        return self.status is MotionStatus.SUCCESS

    @property
    def reason(self) -> Reason:
        """Reason with which an attempt fails that has no other motion; ``NONE`` of a success."""
        return _REASONS[self.status]

    @property
    def duration(self) -> float:
        """How long it takes [s]."""
        return float(self.time[-1]) if len(self.time) else 0.0

    @property
    def clearance(self) -> float:
        """Smallest distance to anything that is not the robot [m]: 0.05 when it is larger, NaN of a failure."""
        return self.statistics.get("clearance", np.nan)

    @property
    def end(self) -> FloatArray:
        """(J,) last posture."""
        return self.positions[-1]


def _no_plan() -> MotionPlan:
    return MotionPlan(status=MotionStatus.NO_IK)


@dataclass(frozen=True, kw_only=True)
class GraspPlan:
    """The three motions of a pick, or why there are none: ``approach`` is free, ``reach`` and ``lift`` are lines."""

    status: MotionStatus
    detail: str = ""
    """What stopped the grasp that got furthest."""
    grasp_index: int = -1
    world_T_tool: FloatArray = field(default_factory=lambda: np.eye(4))
    """(4, 4) the grasp, or the same turned by half a turn about its approach"""
    approach: MotionPlan = field(default_factory=_no_plan)
    reach: MotionPlan = field(default_factory=_no_plan)
    lift: MotionPlan = field(default_factory=_no_plan)
    attempts: dict[str, int] = field(default_factory=dict)
    """How many grasps were refused in which phase and why."""

    def __bool__(self) -> bool:
        """Whether it succeeded."""
        return self.status is MotionStatus.SUCCESS


@dataclass(frozen=True, kw_only=True)
class MotionQuery:
    """One query of a batch: from a posture to the nearest of some poses."""

    scene: PlanningScene
    start_q: FloatArray
    goals: tuple[FloatArray, ...]
    rng: np.random.Generator


class MotionPlanner(Protocol):
    """Finds motions that touch nothing.

    Equal scenes, queries and streams give equal motions, whatever was asked before; on a GPU only nearly so.
    """

    def plan_pose(
        self, scene: PlanningScene, start_q: ArrayLike, goals: Sequence[ArrayLike], *, rng: np.random.Generator
    ) -> MotionPlan:
        """A free motion to the nearest of some poses of the tool, each (4, 4) ``world_T_tool``."""
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
        """The first feasible of some ranked grasps of a body, each (4, 4) ``world_T_tool``: approach, reach, lift.

        Of a few in a row the nearest posture comes first, or with ``in_order`` each as given and then turned by half a
        turn about its approach. The scene has the gripper open, at all of the approach. What ``body`` touches when
        it is lifted (the table) it may touch; the gripper may touch nothing.
        """
        ...

    def join(self, scene: PlanningScene, plans: Sequence[MotionPlan]) -> MotionPlan:
        """One flowing motion through plans of which each starts where the one before ends.

        It does not stop between them, and keeps no speed limit of theirs. What touches at the start may touch no deeper
        on the way, as on a line. When that is not free, the plans follow each other with stops.
        """
        ...

    def plan_batch(self, queries: Sequence[MotionQuery]) -> list[MotionPlan]:
        """Several independent queries."""
        ...
