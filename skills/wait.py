"""Wait: hold still for some time."""

from __future__ import annotations

from nimbus.datagen.plugin import Field, Seconds, Skill, Workcell, register


@register("skill", "wait")
class Wait(Skill):
    """Hold the arm and the gripper still. Fails only when another body pushes the arm away."""

    main = "time"
    hand = "keeps"
    time: Seconds = Field(1.0, gt=0, le=60, description="Duration.")

    def run(self, arm: Workcell) -> None:
        """Repeat the last command."""
        arm.begin("wait")
        arm.wait(max(1, round(self.time * arm.simulation.rate)))
