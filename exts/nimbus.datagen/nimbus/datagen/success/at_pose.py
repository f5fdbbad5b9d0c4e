"""At pose: an object, or the tool, is at a point."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from nimbus.datagen.episode.trajectory import Outcome, Reason
from nimbus.datagen.execute.workcell import Workcell
from nimbus.datagen.files.quantities import Metres
from nimbus.datagen.registry import register
from nimbus.datagen.tasks.statements import ObjectReference, PoseReference, Predicate


@register("predicate", "at_pose")
class AtPose(Predicate):
    """The middle of the object's bounds, or the robot's tool, is within 2 cm of a point."""

    main = "at"
    object: ObjectReference | None = Field(None, description="What must be there; the tool when not given.")
    at: PoseReference = Field(description="The point: [x, y, z] in the world frame [m], or in words: start.center.")
    within: Metres = Field(0.02, gt=0, description="Largest distance.")
    axes: Literal["xyz", "xy", "z"] = Field("xyz", description="Which axes of the world count.")

    def failure(self, world: Workcell) -> Outcome | None:
        """Elsewhere."""
        here = world.tool_pose()[:3, 3] if self.object is None else np.add(*world.bounds(self.object)) / 2
        away = (here - np.asarray(self.at, dtype=float))[["xyz".index(axis) for axis in self.axes]]
        distance = float(np.linalg.norm(away))
        if distance <= self.within:
            return None
        detail = f"{self.object or 'the tool'} is {distance * 100:.1f} cm away"
        return Outcome(success=False, reason=Reason.OFF_TARGET, detail=detail)
