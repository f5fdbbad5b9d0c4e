"""Shake: move the held object back and forth."""

from __future__ import annotations

from typing import Literal

import numpy as np

from nimbus.datagen.plugin import Field, Metres, ObjectReference, Skill, Workcell, register

_AXES = {"x": 0, "y": 1, "z": 2}


@register("skill", "shake")
class Shake(Skill):
    """Move the held object quickly back and forth along a line, and return it to its position.

    Needs the object in the gripper. Fails with ``no_path`` when the line is blocked, and with ``slipped_in_transit``
    when the object slips out of the hand.
    """

    main = "object"
    hand = "keeps"
    needs = ("held(object)",)
    gives = ("shaken(object)",)
    object: ObjectReference = Field(description="Object to shake; it must be in the gripper.")
    times: int = Field(3, ge=1, le=20, description="Number of back-and-forth motions.")
    distance: Metres = Field(0.05, gt=0, le=0.3, description="Distance to each side.")
    axis: Literal["x", "y", "z"] = Field("y", description="World axis of the motion.")

    def run(self, arm: Workcell) -> None:
        """Move along lines to both sides in turn."""
        arm.begin("shake")
        middle = arm.tool_pose()
        way = self.distance * np.eye(3)[_AXES[self.axis]]
        ends = [way, -way] * self.times + [np.zeros(3)]
        for end in ends:
            goal = middle.copy()
            goal[:3, 3] += end
            arm.follow(arm.planner.plan_line(arm.look(), arm.arm_command, goal, speed=0.5))
