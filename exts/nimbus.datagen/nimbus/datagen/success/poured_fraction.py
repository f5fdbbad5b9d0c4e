"""Poured fraction: a share of many small things is inside a container."""

from __future__ import annotations

from pydantic import Field

from nimbus.datagen.episode.trajectory import Outcome, Reason
from nimbus.datagen.execute.workcell import Workcell
from nimbus.datagen.files.quantities import Ratio
from nimbus.datagen.registry import register
from nimbus.datagen.success.inside import contains
from nimbus.datagen.tasks.statements import ContainerReference, ObjectsReference, Predicate, each


@register("predicate", "poured_fraction")
class PouredFraction(Predicate):
    """At least 80 % of the objects have their centres of mass within the container."""

    main = "objects"
    objects: ObjectsReference = Field(description="What was poured: a group, such as beads.")
    container: ContainerReference = Field(description="The object or fixture that must contain them.")
    at_least: Ratio = Field(0.8, gt=0, le=1, description="Share of the objects.")

    def failure(self, world: Workcell) -> Outcome | None:
        """Too few."""
        names = each(self.objects)
        inside = sum(contains(world, self.container, name) for name in names)
        if names and inside >= self.at_least * len(names) - 1e-9:
            return None
        detail = f"{inside} of {len(names)} are in {self.container}"
        return Outcome(success=False, reason=Reason.SPILLED, detail=detail)
