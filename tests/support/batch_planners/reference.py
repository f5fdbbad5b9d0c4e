"""Planner ``reference``: the default planner with the interface for batches, equal on every machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from nimbus.datagen.plan.batch import BatchPlanner
from nimbus.datagen.plan.motion import MotionPlan, MotionQuery
from nimbus.datagen.plan.ompl import OmplPlanner
from nimbus.datagen.registry import register


@register("planner", "reference")
class ReferencePlanner(BatchPlanner):
    """Plans the queries of a batch in sequence, with the default planner."""

    batch_size: ClassVar[int] = 8

    def plan_batch(self, queries: Sequence[MotionQuery]) -> list[MotionPlan]:
        """Plan several queries."""
        return [self._plan_one(query) for query in queries]

    def _plan_one(self, query: MotionQuery) -> MotionPlan:
        planner = OmplPlanner(
            velocity_limits=self.velocity if query.velocity is None else query.velocity,
            acceleration_limits=self.acceleration if query.acceleration is None else query.acceleration,
            velocity_scale=1.0,
            acceleration_scale=1.0,
            period=self.period,
        )
        if query.goal_q is not None:
            return planner.plan_joints(query.scene, query.start_q, query.goal_q, rng=query.rng)
        return planner.plan_pose(query.scene, query.start_q, query.goals, rng=query.rng)
