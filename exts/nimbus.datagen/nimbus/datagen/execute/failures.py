"""How a skill says that it cannot be done."""

from __future__ import annotations

from typing import Self

from nimbus.datagen.episode.trajectory import Reason
from nimbus.datagen.plan.motion import MotionPlan, MotionStatus


class SkillFailure(Exception):
    """A skill cannot be done here; the attempt ends with this reason."""

    def __init__(self, reason: Reason, detail: str = "") -> None:
        self.reason, self.detail = reason, detail
        super().__init__(f"{reason}: {detail}" if detail else str(reason))

    @classmethod
    def of_plan(cls, plan: MotionPlan) -> Self:
        """What it means for a skill that there is no motion."""
        return cls(_REASONS[plan.status], plan.detail)


class GivenUp(SkillFailure):
    """The steps say that the attempt ends here; no recovery follows."""


_REASONS = {
    MotionStatus.NO_IK: Reason.NO_IK,
    MotionStatus.NO_PATH: Reason.NO_PATH,
    MotionStatus.START_IN_COLLISION: Reason.COLLISION_AT_START,
    MotionStatus.GOAL_IN_COLLISION: Reason.NO_IK,
    MotionStatus.OUT_OF_LIMITS: Reason.NO_IK,
    MotionStatus.LINE_BLOCKED: Reason.NO_PATH,
    MotionStatus.REJECTED: Reason.PLAN_REJECTED,
}
