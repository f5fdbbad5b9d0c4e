"""Home: go to the robot's home posture."""

from __future__ import annotations

from nimbus.datagen.plugin import Skill, Workcell, register


@register("skill", "home")
class Home(Skill):
    """Go to the robot's home posture. Fails with ``no_path`` when the path is blocked."""

    hand = "keeps"

    def run(self, arm: Workcell) -> None:
        """Plan and follow one free motion."""
        arm.begin("home")
        arm.move_joints(arm.robot.arm.home)
