"""At rest: objects do not move any more."""

from __future__ import annotations

from pydantic import Field

from nimbus.datagen.episode.trajectory import Outcome, Reason
from nimbus.datagen.execute.workcell import Workcell
from nimbus.datagen.registry import register
from nimbus.datagen.tasks.statements import ObjectsReference, Predicate, each


@register("predicate", "at_rest")
class AtRest(Predicate):
    """The objects are slower than 2 cm/s and turn slower than 0.5 rad/s; without a name, all objects."""

    main = "object"
    object: ObjectsReference | None = Field(None, description="What must be at rest; everything when not given.")

    def failure(self, world: Workcell) -> Outcome | None:
        """The first that still moves."""
        for name in world.objects if self.object is None else each(self.object):
            if not world.is_at_rest(name):
                linear, angular = world.simulation.body_speed(name)
                detail = f"{name} moves at {linear:.3f} m/s and {angular:.2f} rad/s"
                return Outcome(success=False, reason=Reason.NOT_AT_REST, detail=detail)
        return None
