"""Upright: an object stands."""

from __future__ import annotations

import math

from pydantic import Field

from nimbus.datagen.episode.trajectory import Outcome, Reason
from nimbus.datagen.execute.workcell import Workcell
from nimbus.datagen.files.quantities import Radians
from nimbus.datagen.registry import register
from nimbus.datagen.tasks.statements import ObjectsReference, Predicate, each


@register("predicate", "upright")
class Upright(Predicate):
    """The objects' own vertical axes are within 15 degrees of the world's."""

    main = "object"
    object: ObjectsReference = Field(description="What must stand; a group means each of its objects.")
    tolerance: Radians = Field(math.radians(15), gt=0, le=math.pi / 2, description="How far it may lean.")

    def failure(self, world: Workcell) -> Outcome | None:
        """The first object that leans."""
        for name in each(self.object):
            lean = math.acos(max(-1.0, min(1.0, float(world.pose(name)[2, 2]))))
            if lean > self.tolerance:
                detail = f"{name} leans by {math.degrees(lean):.0f} deg"
                return Outcome(success=False, reason=Reason.TOPPLED, detail=detail)
        return None
