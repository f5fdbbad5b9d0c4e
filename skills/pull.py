"""Pull: draw an object nearer with the fingers behind its far side."""

from __future__ import annotations

import numpy as np

from nimbus.datagen.execute.toolkit import object_center, push_object
from nimbus.datagen.plugin import Field, Metres, ObjectReference, Skill, Workcell, register


@register("skill", "pull")
class Pull(Skill):
    """Hook the fingers behind an object and draw it along the surface, towards the robot.

    Needs an empty gripper, room behind the object, and something that does not roll. Fails with ``no_ik`` or
    ``no_path`` when the fingers cannot come behind it, ``toppled`` or ``off_target``.
    """

    main = "object"
    hand = "keeps"
    needs = ("empty_hand", "clear(object)", "slides(object)")
    gives = ("moved(object)",)
    object: ObjectReference = Field(description="What to pull.")
    by: Metres = Field(0.1, gt=0, le=0.6, description="How far.")
    tolerance: Metres = Field(0.015, gt=0, le=0.2, description="How far from there it may end.")
    strokes: int = Field(5, ge=1, le=20, description="Strokes at most.")
    speed: float = Field(0.12, gt=0, le=0.5, description="Speed of the fingers [m/s].")

    def run(self, arm: Workcell) -> None:
        """Pull in strokes until the object has arrived."""
        place, base = object_center(arm, self.object), np.array(arm.stage.robot_position[:2])
        way = base - place
        target = place + self.by * way / np.linalg.norm(way)
        push_object(arm, self.object, target, tolerance=self.tolerance, strokes=self.strokes, speed=self.speed)
        arm.begin("retreat")
        arm.open()
