"""Push: move an object along the surface without grasping it."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np

from nimbus.datagen.execute.toolkit import SIDES, object_center, push_object
from nimbus.datagen.plugin import (
    Field,
    Metres,
    ObjectReference,
    PydanticCustomError,
    RegionReference,
    Skill,
    Workcell,
    model_validator,
    register,
)


@register("skill", "push")
class Push(Skill):
    """Push an object along the surface with the finger tips behind it until it reaches its target.

    Needs an empty gripper, space behind the object, and an object that does not roll. Pushes in strokes and aims before
    each stroke. Give ``to``, or ``direction`` and ``by``. Fails with ``no_ik`` or ``no_path`` when the fingers cannot
    get behind the object, with ``toppled``, or with ``off_target`` after the last stroke.
    """

    main = "object"
    hand = "keeps"
    needs = ("empty_hand", "clear(object)", "slides(object)")
    gives = ("at(object, to)",)
    object: ObjectReference = Field(description="Object to push.")
    to: RegionReference | None = Field(None, description="Region; its center is the target.")
    direction: Literal["left", "right", "front", "behind"] | None = Field(
        None, description="Direction, as the robot sees it: front is toward the robot, behind is away from it."
    )
    by: Annotated[Metres, Field(gt=0, le=1)] | None = Field(None, description="Distance along `direction`.")
    tolerance: Metres = Field(0.015, gt=0, le=0.2, description="Largest distance from the target at the end.")
    strokes: int = Field(6, ge=1, le=20, description="Largest number of strokes.")
    speed: float = Field(0.12, gt=0, le=0.5, description="Speed of the fingers [m/s].")

    @model_validator(mode="after")
    def _one_target(self) -> Push:
        if (self.to is None) == (self.direction is None) or (self.direction is None) != (self.by is None):
            raise PydanticCustomError("push", "give either 'to', or 'direction' and 'by'")
        return self

    def run(self, arm: Workcell) -> None:
        """Push in strokes until the object has arrived."""
        if self.to is not None:
            target = np.array(arm.regions[self.to].center)
        else:
            target = object_center(arm, self.object) + (self.by or 0.0) * SIDES[self.direction or "behind"]
        push_object(arm, self.object, target, tolerance=self.tolerance, strokes=self.strokes, speed=self.speed)
        arm.begin("retreat")
        arm.open()
