"""Inside: an object is in the bin where it belongs."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from nimbus.datagen.execute.workcell import Workcell
from nimbus.datagen.registry import register
from nimbus.datagen.skill import FixtureReference, ObjectReference, Predicate
from nimbus.datagen.trajectory import Outcome, Reason


def contains(world: Workcell, container: str, name: str) -> bool:
    """Whether an object's centre of mass lies within a container's walls and below its rim."""
    low, high = (np.array(corner) for corner in world.fixture(container).bounds)
    center = world.pose(name) @ np.append(world.model(name).center_of_mass, 1.0)
    place = (np.linalg.inv(world.pose(container)) @ center)[:3]
    return bool(np.all(place > low) and np.all(place < high))


@register("predicate", "inside")
class Inside(Predicate):
    """The object's centre of mass is within the container's walls and below its rim."""

    main = "object"
    object: ObjectReference = Field(description="What must be inside.")
    container: FixtureReference = Field(description="The open fixture that must contain it.")

    def failure(self, world: Workcell) -> Outcome | None:
        """Wrong bin, on the floor, or just not inside."""
        if contains(world, self.container, self.object):
            return None
        for name in world.stage.fixtures:
            if contains(world, name, self.object):
                detail = f"{self.object} is in {name}, not in {self.container}"
                return Outcome(success=False, reason=Reason.WRONG_BIN, detail=detail)
        if world.has_fallen(self.object):
            return Outcome(success=False, reason=Reason.ON_FLOOR, detail=f"{self.object} fell")
        return Outcome(success=False, reason=Reason.NOT_IN_BIN, detail=f"{self.object} is not in {self.container}")
