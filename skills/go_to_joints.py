"""Go to joints: move to a posture of the arm."""

from __future__ import annotations

from typing import Annotated

from nimbus.datagen.plugin import Field, Radians, Reason, Skill, SkillFailure, Workcell, register


@register("skill", "go_to_joints")
class GoToJoints(Skill):
    """Move freely to a posture of the arm.

    Fails with ``no_ik`` when the posture is beyond a joint limit or in collision, and with ``no_path`` when the path is
    blocked.
    """

    main = "posture"
    hand = "keeps"
    posture: Annotated[tuple[Radians, ...], Field(min_length=1)] = Field(
        description="One position per joint of the arm, from base to hand [rad]."
    )

    def run(self, arm: Workcell) -> None:
        """Plan and follow one free motion."""
        arm.begin("move")
        count = len(arm.robot.arm.joints)
        if len(self.posture) != count:
            raise SkillFailure(Reason.NO_IK, f"{len(self.posture)} joint values for an arm of {count}")
        arm.move_joints(self.posture)
