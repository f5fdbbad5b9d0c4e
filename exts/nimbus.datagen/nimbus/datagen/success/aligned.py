"""Aligned: an object has the direction that it should have."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from nimbus.datagen.episode.trajectory import Outcome, Reason
from nimbus.datagen.execute.workcell import Workcell
from nimbus.datagen.files.quantities import Radians
from nimbus.datagen.registry import register
from nimbus.datagen.tasks.statements import ContainerReference, ObjectReference, Predicate


@register("predicate", "aligned")
class Aligned(Predicate):
    """The object's heading, or one of its axes, is within 10 degrees of another thing's or the world's.

    Without ``axis`` headings are compared, and ``every`` says after which turn the object looks the same: 90 deg for a
    block, 180 deg for a book. With ``axis`` that axis of both is compared, and its sense does not matter.
    """

    main = "object"
    object: ObjectReference = Field(description="What must be aligned.")
    to: ContainerReference | None = Field(None, description="With what; the axes of the world when not given.")
    yaw: Radians = Field(0.0, description="Heading that it should have to the other.")
    every: Radians = Field(2 * math.pi, gt=0, le=2 * math.pi, description="Turns of so much make no difference.")
    axis: Literal["x", "y", "z"] | None = Field(None, description="Compare this axis of both, not the heading.")
    tolerance: Radians = Field(math.radians(10), gt=0, le=math.pi / 2, description="How far it may be off.")

    @model_validator(mode="after")
    def _one_of_both(self) -> Aligned:
        if self.axis is not None and self.yaw != 0.0:
            raise PydanticCustomError("aligned", "yaw and axis do not go together", {"instead": "give one of them"})
        return self

    def failure(self, world: Workcell) -> Outcome | None:
        """Turned away."""
        turn = world.pose(self.object)[:3, :3]
        other = np.eye(3) if self.to is None else world.pose(self.to)[:3, :3]
        off = self._between_axes(turn, other) if self.axis else self._between_headings(turn, other)
        if off <= self.tolerance:
            return None
        detail = f"{self.object} is turned by {math.degrees(off):.0f} deg from {self.to or 'the world'}"
        return Outcome(success=False, reason=Reason.NOT_ALIGNED, detail=detail)

    def _between_axes(self, turn: np.ndarray, other: np.ndarray) -> float:
        column = "xyz".index(self.axis or "x")
        return math.acos(min(1.0, abs(float(turn[:, column] @ other[:, column]))))

    def _between_headings(self, turn: np.ndarray, other: np.ndarray) -> float:
        off = _heading(turn) - _heading(other) - self.yaw
        return abs((off + self.every / 2) % self.every - self.every / 2)


def _heading(turn: np.ndarray) -> float:
    return math.atan2(turn[1, 0], turn[0, 0])
