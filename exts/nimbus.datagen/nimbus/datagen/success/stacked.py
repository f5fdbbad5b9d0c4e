"""Stacked: objects lie one on the other."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

from pydantic import Field

from nimbus.datagen.episode.trajectory import Outcome, Reason
from nimbus.datagen.execute.contact_queries import is_resting_on
from nimbus.datagen.execute.workcell import Workcell
from nimbus.datagen.registry import register
from nimbus.datagen.tasks.statements import ObjectsReference, Predicate, each


@register("predicate", "stacked")
class Stacked(Predicate):
    """Every object but the first rests on the one before it, touching it from above."""

    main = "objects"
    objects: ObjectsReference = Field(description="A group, or a list from the lowest to the highest.")
    order: Literal["given", "any"] = Field("given", description="Whether the order of the list matters.")

    def failure(self, world: Workcell) -> Outcome | None:
        """The first object that does not rest on its neighbour."""
        names = each(self.objects)
        if self.order == "any":
            names = sorted(names, key=world.lowest_point)
        for below, above in pairwise(names):
            if below not in (supports := is_resting_on(world, above)):
                detail = f"{above} rests on {', '.join(sorted(supports)) or 'nothing'}, not on {below}"
                return Outcome(success=False, reason=Reason.NOT_ON, detail=detail)
        return None
