"""Near: one thing is close to another."""

from __future__ import annotations

from pydantic import Field

from nimbus.datagen.episode.trajectory import Outcome, Reason
from nimbus.datagen.execute.contact_queries import measure_gap
from nimbus.datagen.execute.workcell import Workcell
from nimbus.datagen.files.quantities import Metres
from nimbus.datagen.registry import register
from nimbus.datagen.tasks.statements import ContainerReference, ObjectsReference, Predicate, each


@register("predicate", "near")
class Near(Predicate):
    """The surfaces of the objects are within 5 cm of the other thing's, in any direction; touching is near."""

    main = "object"
    object: ObjectsReference = Field(description="What must be near; a group means each of its objects.")
    to: ContainerReference = Field(description="The object or fixture that it must be near to.")
    within: Metres = Field(0.05, gt=0, le=2, description="Largest distance between the two surfaces.")

    def failure(self, world: Workcell) -> Outcome | None:
        """The first object that is too far."""
        for name in each(self.object):
            distance = measure_gap(world, name, self.to, most=2 * self.within)
            if distance > self.within:
                more = "more than " if distance >= 2 * self.within else ""
                detail = f"{name} is {more}{distance * 100:.1f} cm from {self.to}"
                return Outcome(success=False, reason=Reason.OFF_TARGET, detail=detail)
        return None
