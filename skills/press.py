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

    Needs an empty gripper. Fails with ``no_grasp`` when no finger reaches the button, and with ``not_moved`` when it
    was not pressed far enough.
    """

    main = "object"
    needs = ("pressable(object)",)
    gives = ("pressed(object)",)
    object: JointedReference = Field(description="What to press.")
    joint: str | None = Field(None, description="Which of its joints: button, start; left out: the first.")
    depth: Annotated[Ratio, Field(gt=0, le=1)] = Field(1.0, description="How deep, as a share of its travel.")
    approach: Metres = Field(0.06, gt=0, le=0.3, description="Length of the straight approach.")

    def run(self, arm: Workcell) -> None:
        """Reach, press and retreat."""
        part = JointedPart(arm, self.object, self.joint or "")
        PartManipulator(arm, part, approach=self.approach).by_pressing(self.depth, phase="press")
        deepest = arm.largest_fraction(self.object, self.joint or "")
        if deepest < _ENOUGH * self.depth:
            raise SkillFailure(Reason.NOT_MOVED, f"{part.label} went down by {deepest:.0%} of its travel")
