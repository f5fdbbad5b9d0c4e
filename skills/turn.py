"""Turn: rotate a knob, a valve or a lever."""

from __future__ import annotations

from typing import Annotated

from nimbus.datagen.execute.toolkit import JointedPart, PartManipulator
from nimbus.datagen.plugin import Field, JointedReference, Metres, Ratio, Skill, Workcell, register


@register("skill", "turn")
class Turn(Skill):
    """Turn a knob, a handwheel or a lever, and let go.

    Needs an empty gripper and a part that can be grasped. Grasps it, rotates with it, and grasps again where the
    wrist's range ends. Fails with ``no_grasp``, ``missed_grasp`` or ``not_moved``.
    """

    main = "object"
    needs = ("empty_hand", "turnable(object)")
    gives = ("turned(object)",)
    object: JointedReference = Field(description="What to turn.")
    joint: str | None = Field(None, description="Which of its joints: knob, wheel, lever; left out: the first.")
    to: Annotated[Ratio, Field(ge=0, le=1)] = Field(0.85, description="Where to, as a share of its range.")
    approach: Metres = Field(0.06, gt=0, le=0.3, description="Length of the straight approach.")

    def run(self, arm: Workcell) -> None:
        """Reach, grasp, turn, release and retreat, several times where one stroke is too short."""
        part = JointedPart(arm, self.object, self.joint or "")
        PartManipulator(arm, part, approach=self.approach).by_handle(self.to, phase="turn", strokes=4)
