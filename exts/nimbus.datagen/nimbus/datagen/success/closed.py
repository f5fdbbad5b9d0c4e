"""Closed: a door, drawer or lid is shut."""

from __future__ import annotations

from pydantic import Field

from nimbus.datagen.episode.trajectory import Outcome, Reason
from nimbus.datagen.execute.workcell import Workcell
from nimbus.datagen.files.quantities import Ratio
from nimbus.datagen.registry import register
from nimbus.datagen.tasks.statements import JointedReference, Predicate


@register("predicate", "closed")
class Closed(Predicate):
    """A joint of the object is within 5 % of its way from closed; without a name, every joint."""

    main = "object"
    object: JointedReference = Field(description="What must be closed.")
    joint: str | None = Field(None, description="Which of its joints, such as drawer_0; all of them when not given.")
    within: Ratio = Field(0.05, gt=0, le=1, description="Share of the joint's way that may be left.")

    def failure(self, world: Workcell) -> Outcome | None:
        """The first joint that is open."""
        for joint in [self.joint] if self.joint else [part.name for part in world.model(self.object).parts]:
            share = world.joint_fraction(self.object, joint)
            if share > self.within:
                detail = f"{self.object}.{joint} is open by {share:.0%}"
                return Outcome(success=False, reason=Reason.NOT_CLOSED, detail=detail)
        return None
