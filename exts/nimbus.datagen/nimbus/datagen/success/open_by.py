"""Open by: a door, drawer, lid, knob or lever has gone some share of its way."""

from __future__ import annotations

from pydantic import Field

from nimbus.datagen.episode.trajectory import Outcome, Reason
from nimbus.datagen.execute.workcell import Workcell
from nimbus.datagen.files.quantities import Ratio
from nimbus.datagen.registry import register
from nimbus.datagen.tasks.statements import JointedReference, Predicate


@register("predicate", "open_by")
class OpenBy(Predicate):
    """A joint of the object is at 80 % of its way or further; 0 % is closed, 100 % is as far as it goes."""

    main = "object"
    object: JointedReference = Field(description="What must be open.")
    joint: str | None = Field(None, description="Which of its joints, such as drawer_0; its only one when not given.")
    at_least: Ratio = Field(0.8, gt=0, le=1, description="Share of the joint's way.")
    at_most: Ratio = Field(1.0, gt=0, le=1, description="Share of the joint's way.")

    def failure(self, world: Workcell) -> Outcome | None:
        """Not far enough, or too far."""
        share = world.joint_fraction(self.object, self.joint or "")
        if self.at_least <= share and (share <= self.at_most or self.at_most == 1.0):
            return None
        name = f"{self.object}.{self.joint}" if self.joint else self.object
        return Outcome(success=False, reason=Reason.NOT_OPEN, detail=f"{name} is open by {share:.0%}")
