"""Conditions on cables."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from nimbus.datagen.execute.toolkit import find_frame
from nimbus.datagen.plugin import (
    Field,
    ObjectReference,
    ObjectsReference,
    Outcome,
    Predicate,
    Reason,
    World,
    each,
    register,
)


@register("predicate", "routed")
class Routed(Predicate):
    """The cable passes through every gate: it crosses the plane of x and y of the frame ``gate``, within the object."""

    main = "object"
    version: ClassVar[int] = 1
    needs_flexible = "cable"
    frames = {"through": "gate"}  # noqa: RUF012
    states = ("routed(object, through)",)
    object: ObjectReference = Field(description="The cable.")
    through: ObjectsReference = Field(description="The objects with the gates: a group or a list.")

    def failure(self, world: World) -> Outcome | None:
        """Return the first gate that the cable does not pass through."""
        for name in each(self.through):
            if not self._passes(world, name):
                return Outcome(success=False, reason=Reason.NOT_ROUTED, detail=f"{self.object} is not in {name}")
        return None

    def _passes(self, world: World, name: str) -> bool:
        """Return True if neighboring points of the cable are on both sides of a gate, and the line is in its bounds."""
        points = world.points(self.object)
        points = np.column_stack([points, np.ones(len(points))])
        frame = find_frame(world, name, "gate")
        along = (points @ np.linalg.inv(world.pose(name) @ frame).T)[:, 2]
        inside = points @ np.linalg.inv(world.pose(name)).T
        low, high = world.model(name).bounds
        rows = np.flatnonzero(along[:-1] * along[1:] < 0.0)
        share = (along[rows] / (along[rows] - along[rows + 1]))[:, None]
        crossings = (inside[rows] + share * (inside[rows + 1] - inside[rows]))[:, :3]
        return bool(((crossings > low) & (crossings < high)).all(axis=1).any())
