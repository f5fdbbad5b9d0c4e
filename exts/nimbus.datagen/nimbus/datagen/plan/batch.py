"""Base of motion planners that plan the queries of several episodes at once."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike

from nimbus.datagen.plan.motion import MotionPlan, MotionQuery
from nimbus.datagen.plan.scene import PlanningScene
from nimbus.datagen.plan.timed import TimedPlanner
from nimbus.datagen.plan.timing import RECORD_PERIOD


class MotionExchange(Protocol):
    """Exchange that answers a query together with those of other episodes."""

    def __call__(self, planner: BatchPlanner, query: MotionQuery) -> MotionPlan:
        """Return the plan of one query; the caller's other work continues until the batch is planned."""
        ...


class BatchPlanner(TimedPlanner):
    """Base of planners with a batch-capable backend: each free motion is a query of :meth:`plan_batch`.

    A single query is planned as a batch of one, so that the result of a query never depends on the rest of its batch.

    Args:
        velocity_limits: (J,) limits of the hardware [rad/s].
        acceleration_limits: (J,) limits of the hardware [rad/s^2].
        velocity_scale: Fraction of the velocity limits that motions use.
        acceleration_scale: Fraction of the acceleration limits.
        period: Time between commands [s].
        exchange: Collects the queries of several episodes; None to plan each at once.
    """

    batch_size: ClassVar[int]
    """Number of queries that the backend plans at once."""

    def __init__(
        self,
        *,
        velocity_limits: ArrayLike,
        acceleration_limits: ArrayLike,
        velocity_scale: float = 0.8,
        acceleration_scale: float = 0.5,
        period: float = RECORD_PERIOD,
        exchange: MotionExchange | None = None,
    ) -> None:
        super().__init__(
            velocity_limits=velocity_limits,
            acceleration_limits=acceleration_limits,
            velocity_scale=velocity_scale,
            acceleration_scale=acceleration_scale,
            period=period,
        )
        self._exchange = exchange

    def plan_pose(
        self, scene: PlanningScene, start_q: ArrayLike, goals: Sequence[ArrayLike], *, rng: np.random.Generator
    ) -> MotionPlan:
        """See :class:`~nimbus.datagen.plan.timed.TimedPlanner`."""
        poses = tuple(np.asarray(goal, dtype=float) for goal in goals)
        query = MotionQuery(scene=scene, start_q=np.asarray(start_q, dtype=float), goals=poses, rng=rng)
        return self._plan(query)

    def plan_joints(
        self, scene: PlanningScene, start_q: ArrayLike, goal_q: ArrayLike, *, rng: np.random.Generator
    ) -> MotionPlan:
        """See :class:`~nimbus.datagen.plan.timed.TimedPlanner`."""
        start, end = np.asarray(start_q, dtype=float), np.asarray(goal_q, dtype=float)
        return self._plan(MotionQuery(scene=scene, start_q=start, goal_q=end, rng=rng))

    @abstractmethod
    def plan_batch(self, queries: Sequence[MotionQuery]) -> list[MotionPlan]:
        """Plan any number of independent queries; the plan of each is the same in every batch."""

    def _plan(self, query: MotionQuery) -> MotionPlan:
        own = replace(query, velocity=self.velocity, acceleration=self.acceleration)
        return self.plan_batch([own])[0] if self._exchange is None else self._exchange(self, own)
