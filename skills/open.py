"""Open: pull a drawer, a door or a lid by its handle."""

from __future__ import annotations

from typing import Annotated

from nimbus.datagen.execute.toolkit import JointedPart, PartManipulator
from nimbus.datagen.plugin import Field, JointedReference, Metres, Ratio, Skill, Workcell, register


@register("skill", "open")
class Open(Skill):
    """Pull a drawer, a door or a lid open by its handle, and let go.

    Needs an empty gripper and a part with a handle. Grasps the handle, moves it along its joint, and grasps again where
    the arm's range ends. Fails with ``no_grasp``, ``missed_grasp`` or ``not_moved``.
    """

    main = "object"
    needs = ("empty_hand", "has_handle(object)")
    gives = ("open(object)",)
    object: JointedReference = Field(description="What to open.")
    joint: str | None = Field(None, description="Which of its joints: drawer_1, door, lid; left out: the first.")
    to: Annotated[Ratio, Field(gt=0, le=1)] = Field(0.85, description="How far, as a share of what it can open.")
    approach: Metres = Field(0.06, gt=0, le=0.3, description="Length of the straight approach.")

    def run(self, arm: Workcell) -> None:
        """Reach, grasp, pull, release and retreat."""
        part = JointedPart(arm, self.object, self.joint or "")
        PartManipulator(arm, part, approach=self.approach).by_handle(self.to, phase="pull")
