"""Turned by: an object is turned from where it was at the start."""

from __future__ import annotations

import math

from pydantic import Field

from nimbus.datagen.episode.trajectory import Outcome, Reason
from nimbus.datagen.execute.workcell import Workcell
from nimbus.datagen.files.quantities import Radians
from nimbus.datagen.registry import register
from nimbus.datagen.success.moved_by import moved
from nimbus.datagen.tasks.statements import ObjectReference, Predicate


@register("predicate", "turned_by")
class TurnedBy(Predicate):
    """The angle between the object's orientation and that at the start is within 15 degrees of what is asked.

    About whatever axis: upside down is 180 degrees, on a side is 90.
    """

    main = "object"
    object: ObjectReference = Field(description="What must be turned.")
    by: Radians = Field(math.pi, gt=0, le=math.pi, description="The angle.")
    tolerance: Radians = Field(math.radians(15), gt=0, le=math.pi, description="How far it may be off.")

    def failure(self, world: Workcell) -> Outcome | None:
        """Not turned, or otherwise."""
        _, turn = moved(world, self.object)
        if abs(turn - self.by) <= self.tolerance:
            return None
        detail = f"{self.object} is turned by {math.degrees(turn):.0f} of {math.degrees(self.by):.0f} deg"
        return Outcome(success=False, reason=Reason.NOT_MOVED, detail=detail)
