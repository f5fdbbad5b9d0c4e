"""Inserted: a peg is in a hole."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from nimbus.datagen.episode.trajectory import Outcome, Reason
from nimbus.datagen.execute.motions.alignment import find_frame
from nimbus.datagen.execute.workcell import Workcell
from nimbus.datagen.files.quantities import Ratio
from nimbus.datagen.registry import register
from nimbus.datagen.tasks.statements import ObjectReference, Predicate


@register("predicate", "inserted")
class Inserted(Predicate):
    """The peg's frame ``tip`` is inside the hole, at least as deep as a share of it."""

    main = "object"
    object: ObjectReference = Field(description="The peg.")
    into: ObjectReference = Field(description="What has the hole.")
    hole: str = Field("hole", description="Name of the hole.")
    depth: Ratio = Field(0.6, gt=0, le=1, description="Least share of the hole's depth.")

    def failure(self, world: Workcell) -> Outcome | None:
        """Beside the hole, or not deep enough."""
        low, high = world.model(self.into).cavities[self.hole]
        tip = world.pose(self.object) @ find_frame(world, self.object, "tip")[:, 3]
        place = (np.linalg.inv(world.pose(self.into)) @ tip)[:3]
        depth = float((high[2] - place[2]) / (high[2] - low[2]))
        if np.all(place[:2] > low[:2]) and np.all(place[:2] < high[:2]) and depth >= self.depth:
            return None
        detail = f"the tip of {self.object} is {depth:.0%} deep in {self.hole} of {self.into}"
        return Outcome(success=False, reason=Reason.NOT_INSERTED, detail=detail)
