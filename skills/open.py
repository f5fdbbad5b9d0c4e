"""Open: pull a drawer, a door or a lid by its handle."""

from __future__ import annotations

from typing import Annotated

from nimbus.datagen.execute.toolkit import JointedPart, PartManipulator
from nimbus.datagen.plugin import Field, JointedReference, Metres, Ratio, Skill, Workcell, register


@register("skill", "open")
class Open(Skill):
    """Pull a drawer, a door or a lid open by its handle, and release it.

    Needs an empty gripper and a part with a handle. Grasps the handle, moves it along its joint, and grasps it again
    when the arm cannot move it further. Fails with ``no_grasp``, ``missed_grasp`` or ``not_moved``.
    """

    main = "object"
    needs = ("empty_hand", "has_handle(object)")
    gives = ("open(object)",)
    object: JointedReference = Field(description="Object with the part to open.")
    joint: str | None = Field(None, description="Name of the joint, such as drawer_1, door or lid; default: the first.")
    to: Annotated[Ratio, Field(gt=0, le=1)] = Field(0.85, description="Target, as a fraction of the joint's range.")
    approach: Metres = Field(0.06, gt=0, le=0.3, description="Length of the straight approach.")

    def run(self, arm: Workcell) -> None:
        """Reach, grasp, pull, release and retreat."""
        part = JointedPart(arm, self.object, self.joint or "")
        PartManipulator(arm, part, approach=self.approach).by_handle(self.to, phase="pull")
