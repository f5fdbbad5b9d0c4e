"""Moved by: an object has come some way."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from nimbus.datagen.episode.trajectory import Outcome, Reason
from nimbus.datagen.execute.workcell import Workcell
from nimbus.datagen.files.quantities import Metres, Radians
from nimbus.datagen.registry import register
from nimbus.datagen.tasks.statements import ObjectsReference, Predicate, each

Float = NDArray[np.float64]


def moved(world: Workcell, name: str) -> tuple[Float, float]:
    """The way (3,) [m] that a thing has come since the start, in the world frame, and the angle of its turn [rad]."""
    start, now = world.start_poses[name], world.pose(name)
    turn = start[:3, :3].T @ now[:3, :3]
    return now[:3, 3] - start[:3, 3], float(np.arccos(np.clip((np.trace(turn) - 1) / 2, -1, 1)))


@register("predicate", "moved_by")
class MovedBy(Predicate):
    """The objects are so far from their start or further, in any direction or within 30 degrees of one."""

    main = "object"
    object: ObjectsReference = Field(description="What must have moved; a group means each of its objects.")
    distance: Metres = Field(0.05, gt=0, description="Least distance from the start.")
    along: tuple[float, float, float] | None = Field(None, description="Direction in the world frame, of any length.")
    tolerance: Radians = Field(math.radians(30), gt=0, le=math.pi, description="How far the direction may be off.")

    def failure(self, world: Workcell) -> Outcome | None:
        """The first object that did not come far enough, or went elsewhere."""
        for name in each(self.object):
            way, _ = moved(world, name)
            distance = float(np.linalg.norm(way))
            if distance < self.distance or not self._follows(way / distance):
                shown = ", ".join(f"{part * 100:.1f}" for part in way)
                detail = f"{name} moved {distance * 100:.1f} cm: by [{shown}] cm"
                return Outcome(success=False, reason=Reason.NOT_MOVED, detail=detail)
        return None

    def _follows(self, way: Float) -> bool:
        if self.along is None:
            return True
        return float(way @ np.array(self.along)) >= float(np.linalg.norm(self.along)) * math.cos(self.tolerance)
