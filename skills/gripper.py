"""Gripper: move the fingers to an opening."""

from __future__ import annotations

from typing import Literal

import numpy as np

from nimbus.datagen.plugin import Field, Metres, Skill, Workcell, register


@register("skill", "gripper")
class SetGripper(Skill):
    """Open or close the fingers, or set the distance between the pads.

    ``to: open`` releases the object in the gripper. To grasp an object use ``pick``, which also tracks the object.
    """

    main = "to"
    to: Literal["open", "closed"] | Metres = Field(description="open, closed, or a distance between the pads [m].")

    def run(self, arm: Workcell) -> None:
        """Move the fingers over a few record periods."""
        arm.begin("gripper")
        gripper = arm.robot.gripper
        if self.to == "open":
            arm.open()
            return
        width = 0.0 if self.to == "closed" else min(float(self.to), gripper.shape.opening)
        target = gripper.closed + (gripper.open - gripper.closed) * width / gripper.shape.opening
        for opening in np.linspace(arm.opening, target, 5)[1:]:
            arm.command(opening=float(opening))
