"""Pressed: a button was down at some time, though it springs back."""

from __future__ import annotations

from pydantic import Field

from nimbus.datagen.episode.trajectory import Outcome, Reason
from nimbus.datagen.execute.workcell import Workcell
from nimbus.datagen.files.quantities import Ratio
from nimbus.datagen.registry import register
from nimbus.datagen.tasks.statements import JointedReference, Predicate


@register("predicate", "pressed")
class Pressed(Predicate):
    """A joint of the object has been at 90 % of its way or further, at any instant of the attempt."""

    main = "object"
    object: JointedReference = Field(description="What must have been pressed.")
    joint: str | None = Field(None, description="Which of its joints, such as start; its first one when not given.")
    at_least: Ratio = Field(0.9, gt=0, le=1, description="Share of the joint's way.")

    def failure(self, world: Workcell) -> Outcome | None:
        """Never far enough."""
        share = world.largest_fraction(self.object, self.joint or "")
        if share >= self.at_least:
            return None
        detail = f"{self.object} was pressed by {share:.0%} at most"
        return Outcome(success=False, reason=Reason.NOT_MOVED, detail=detail)
