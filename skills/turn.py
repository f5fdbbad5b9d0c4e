"""Turn: rotate a knob, a valve or a lever."""

from __future__ import annotations

from typing import Annotated

from nimbus.datagen.execute.toolkit import JointedPart, PartManipulator
from nimbus.datagen.plugin import Field, JointedReference, Metres, Ratio, Skill, Workcell, register


@register("skill", "turn")
class Turn(Skill):
    """Turn a knob, a handwheel or a lever, and release it.

    Needs an empty gripper and a part that can be grasped. Grasps the part, turns it, and grasps it again when the arm
    cannot turn it further. Fails with ``no_grasp``, ``missed_grasp`` or ``not_moved``.
    """

    main = "object"
    needs = ("empty_hand", "turnable(object)")
    gives = ("turned(object)",)
    object: JointedReference = Field(description="Object with the part to turn.")
    joint: str | None = Field(None, description="Name of the joint, such as knob, wheel or lever; default: the first.")
    to: Annotated[Ratio, Field(ge=0, le=1)] = Field(0.85, description="Target, as a fraction of the joint's range.")
    approach: Metres = Field(0.06, gt=0, le=0.3, description="Length of the straight approach.")

    def run(self, arm: Workcell) -> None:
        """Reach, grasp, turn, release and retreat; repeat while the part is not at its target."""
        part = JointedPart(arm, self.object, self.joint or "")
        PartManipulator(arm, part, approach=self.approach).by_handle(self.to, phase="turn", strokes=4)
