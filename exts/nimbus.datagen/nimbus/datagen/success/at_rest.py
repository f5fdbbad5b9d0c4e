"""At rest: an object does not move any more."""

from __future__ import annotations

from pydantic import Field

from nimbus.datagen.execute.workcell import Workcell
from nimbus.datagen.registry import register
from nimbus.datagen.skill import ObjectReference, Predicate
from nimbus.datagen.trajectory import Outcome, Reason


@register("predicate", "at_rest")
class AtRest(Predicate):
    """The object is slower than 2 cm/s and turns slower than 0.5 rad/s."""

    main = "object"
    object: ObjectReference = Field(description="What must be at rest.")

    def failure(self, world: Workcell) -> Outcome | None:
        """Still moving."""
        if world.is_at_rest(self.object):
            return None
        linear, angular = world.simulation.body_speed(self.object)
        detail = f"{self.object} moves at {linear:.3f} m/s and {angular:.2f} rad/s"
        return Outcome(success=False, reason=Reason.NOT_AT_REST, detail=detail)
