"""Beside: an object stands next to another."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from nimbus.datagen.episode.trajectory import Outcome, Reason
from nimbus.datagen.execute.contact_queries import is_resting_on, measure_gap
from nimbus.datagen.execute.workcell import Workcell
from nimbus.datagen.files.quantities import Metres
from nimbus.datagen.registry import register
from nimbus.datagen.tasks.statements import ContainerReference, ObjectReference, Predicate
from nimbus.datagen.transforms import quat_to_matrix

_WAYS = {"left": (0, 1), "right": (0, -1), "front": (-1, 0), "behind": (1, 0)}
"""x, y of each side in the frame of the robot, which looks along x."""


@register("predicate", "beside")
class Beside(Predicate):
    """The object is within 8 cm of the other one, neither rests on the other, and it is on the side that is named.

    A side is as the robot sees it: within 45 degrees of that way, from the middle of the other one; front is nearer to
    the robot.
    """

    main = "object"
    object: ObjectReference = Field(description="What must stand there.")
    of: ContainerReference = Field(description="The object or fixture that it must stand next to.")
    within: Metres = Field(0.08, gt=0, le=1, description="Largest distance between the two surfaces.")
    side: Literal["left", "right", "front", "behind"] | None = Field(None, description="Any when not given.")

    def failure(self, world: Workcell) -> Outcome | None:
        """Too far, on top, or on another side."""
        if why := self._why(world):
            return Outcome(success=False, reason=Reason.OFF_TARGET, detail=f"{self.object} {why} {self.of}")
        return None

    def _why(self, world: Workcell) -> str:
        distance = measure_gap(world, self.object, self.of, most=2 * self.within)
        if distance > self.within:
            return f"is {distance * 100:.1f} cm or more from"
        if self.of in is_resting_on(world, self.object) or self.object in is_resting_on(world, self.of):
            return "is not beside, but on or below"
        if self.side is None:
            return ""
        one, other = (np.add(*world.bounds(name)) / 2 for name in (self.object, self.of))
        ahead, left, _ = quat_to_matrix(world.stage.robot_wxyz).T @ (one - other)
        way = np.array(_WAYS[self.side]) @ (ahead, left)
        return "" if way >= np.hypot(ahead, left) * np.cos(np.pi / 4) else f"is not on the {self.side} side of"
