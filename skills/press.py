"""Press: push a button."""

from __future__ import annotations

from typing import Annotated

from nimbus.datagen.execute.toolkit import JointedPart, PartManipulator
from nimbus.datagen.plugin import (
    Field,
    JointedReference,
    Metres,
    Ratio,
    Reason,
    Skill,
    SkillFailure,
    Workcell,
    register,
)

_ENOUGH = 0.9
"""Fraction of the requested depth that counts as pressed."""


@register("skill", "press")
class Press(Skill):
    """Press a button with closed fingers, and retreat.

    Needs an empty gripper. Fails with ``no_grasp`` when the fingers cannot reach the button, with ``not_moved`` when
    they do not press it far enough, and with ``gripper_not_clear`` when they hold an object.
    """

    main = "object"
    needs = ("pressable(object)",)
    gives = ("pressed(object)",)
    object: JointedReference = Field(description="Object with the button.")
    joint: str | None = Field(None, description="Name of the joint, such as button or start; default: the first.")
    depth: Annotated[Ratio, Field(gt=0, le=1)] = Field(1.0, description="Depth, as a fraction of the button's travel.")
    approach: Metres = Field(0.06, gt=0, le=0.3, description="Length of the straight approach.")

    def run(self, arm: Workcell) -> None:
        """Reach, press and retreat."""
        part = JointedPart(arm, self.object, self.joint or "")
        PartManipulator(arm, part, approach=self.approach).by_pressing(self.depth, phase="press")
        deepest = arm.largest_fraction(self.object, self.joint or "")
        if deepest < _ENOUGH * self.depth:
            raise SkillFailure(Reason.NOT_MOVED, f"{part.label} went down by {deepest:.0%} of its travel")
