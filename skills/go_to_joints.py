"""Go to joints: move to a posture of the arm."""

from __future__ import annotations

from typing import Annotated

from nimbus.datagen.plugin import Field, Radians, Reason, Skill, SkillFailure, Workcell, register


@register("skill", "go_to_joints")
class GoToJoints(Skill):
    """Move freely to a posture. Fails with ``no_ik`` beyond a joint limit or in collision, ``no_path`` when blocked."""

    main = "posture"
    hand = "keeps"
    posture: Annotated[tuple[Radians, ...], Field(min_length=1)] = Field(
        description="One value a joint of the arm, base first [rad]."
    )

    def run(self, arm: Workcell) -> None:
        """Plan and follow one free motion."""
        arm.begin("move")
        count = len(arm.robot.arm.joints)
        if len(self.posture) != count:
            raise SkillFailure(Reason.NO_IK, f"{len(self.posture)} joint values for an arm of {count}")
        arm.move_joints(self.posture)
