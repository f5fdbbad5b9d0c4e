"""Inside: an object is in the bin where it belongs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from nimbus.datagen.episode.trajectory import Outcome, Reason
from nimbus.datagen.execute.workcell import Workcell
from nimbus.datagen.registry import register
from nimbus.datagen.tasks.statements import ContainerReference, ObjectsReference, Predicate, each

Float = NDArray[np.float64]


def contains(world: Workcell, container: str, name: str, *, cavity: str | None = None) -> bool:
    """Whether an object's centre of mass lies within a container's walls and below its rim.

    Args:
        world: The scene.
        container: A fixture, or an object with cavities.
        name: The object.
        cavity: Only this cavity, or those of this part; any when not given.
    """
    center = world.pose(name) @ np.append(world.model(name).center_of_mass, 1.0)
    places = (((np.linalg.inv(frame) @ center)[:3], low, high) for frame, low, high in _rooms(world, container, cavity))
    return any(bool(np.all(place > low) and np.all(place < high)) for place, low, high in places)


def _rooms(world: Workcell, container: str, cavity: str | None) -> Iterator[tuple[Float, Float, Float]]:
    """The rooms inside a container: frame (4, 4) in the world, lower and upper corner (3,) [m]."""
    if container not in world.objects:
        low, high = world.fixture(container).bounds
        yield world.pose(container), np.array(low), np.array(high)
        return
    model = world.model(container)
    frames = {container: model.cavities} | {f"{container}.{part.name}": part.cavities for part in model.parts}
    for body, cavities in frames.items():
        for name, (low, high) in cavities.items():
            if cavity in (None, name, body.removeprefix(f"{container}.")):
                yield world.pose(body), low, high


@register("predicate", "inside")
class Inside(Predicate):
    """The objects' centres of mass are within the container's walls and below its rim."""

    main = "object"
    object: ObjectsReference = Field(description="What must be inside; a group means each of its objects.")
    container: ContainerReference = Field(description="The fixture or object that must contain it.")
    cavity: str | None = Field(None, description="Name of a part or cavity, such as drawer_0; any when not given.")

    def failure(self, world: Workcell) -> Outcome | None:
        """Wrong bin, on the floor, or just not inside."""
        outside = (name for name in each(self.object) if not contains(world, self.container, name, cavity=self.cavity))
        return next((self._why(world, name) for name in outside), None)

    def _why(self, world: Workcell, name: str) -> Outcome:
        for fixture in world.stage.fixtures:
            if fixture != self.container and contains(world, fixture, name):
                detail = f"{name} is in {fixture}, not in {self.container}"
                return Outcome(success=False, reason=Reason.WRONG_BIN, detail=detail)
        if world.has_fallen(name):
            return Outcome(success=False, reason=Reason.ON_FLOOR, detail=f"{name} fell")
        return Outcome(success=False, reason=Reason.NOT_IN_BIN, detail=f"{name} is not in {self.container}")
