"""Pull: move an object toward the robot with the fingers behind its far side."""

from __future__ import annotations

import numpy as np

from nimbus.datagen.execute.toolkit import object_center, push_object
from nimbus.datagen.plugin import Field, Metres, ObjectReference, Skill, Workcell, register


@register("skill", "pull")
class Pull(Skill):
    """Put the fingers behind an object and move it along the surface toward the robot.

    Needs an empty gripper, space behind the object, and an object that does not roll. Fails with ``no_ik`` or
    ``no_path`` when the fingers cannot reach the far side, or with ``toppled`` or ``off_target``.
    """

    main = "object"
    hand = "keeps"
    needs = ("empty_hand", "clear(object)", "slides(object)")
    gives = ("moved(object)",)
    object: ObjectReference = Field(description="Object to pull.")
    by: Metres = Field(0.1, gt=0, le=0.6, description="Distance of the pull.")
    tolerance: Metres = Field(0.015, gt=0, le=0.2, description="Largest distance from the target at the end.")
    strokes: int = Field(5, ge=1, le=20, description="Largest number of strokes.")
    speed: float = Field(0.12, gt=0, le=0.5, description="Speed of the fingers [m/s].")

    def run(self, arm: Workcell) -> None:
        """Pull in strokes until the object has arrived."""
        place, base = object_center(arm, self.object), np.array(arm.stage.robot_position[:2])
        way = base - place
        target = place + self.by * way / np.linalg.norm(way)
        push_object(arm, self.object, target, tolerance=self.tolerance, strokes=self.strokes, speed=self.speed)
        arm.begin("retreat")
        arm.open()
