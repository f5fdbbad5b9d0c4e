"""Gripper: bring the fingers to an opening."""

from __future__ import annotations

from typing import Literal

import numpy as np

from nimbus.datagen.plugin import Field, Metres, Skill, Workcell, register


@register("skill", "gripper")
class SetGripper(Skill):
    """Open or close the fingers, or bring them to a distance. What they hold is let go when they open.

    To grasp an object use ``pick``, which knows what it holds.
    """

    main = "to"
    to: Literal["open", "closed"] | Metres = Field(description="open, closed, or the distance between the pads [m].")

    def run(self, arm: Workcell) -> None:
        """A few periods of moving fingers."""
        arm.begin("gripper")
        gripper = arm.robot.gripper
        if self.to == "open":
            arm.open()
            return
        width = 0.0 if self.to == "closed" else min(float(self.to), gripper.shape.opening)
        target = gripper.closed + (gripper.open - gripper.closed) * width / gripper.shape.opening
        for opening in np.linspace(arm.opening, target, 5)[1:]:
            arm.command(opening=float(opening))
