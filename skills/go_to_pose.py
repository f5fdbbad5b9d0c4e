"""Go to pose: bring the tool to a position and an orientation."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from nimbus.datagen.plugin import Field, Metres, Quaternion, Reference, Skill, Workcell, make_transform, register


@register("skill", "go_to_pose")
class GoToPose(Skill):
    """Bring the tool to a pose in the world, or in the frame of a thing.

    Fails with ``no_ik`` out of reach or in collision, ``no_path`` when blocked.
    """

    position: tuple[Metres, Metres, Metres] = Field(description="Where the tool goes [m].")
    wxyz: Quaternion = Field((0.0, 1.0, 0.0, 0.0), description="Its orientation; default is pointing down.")
    of: Annotated[str, Reference(("object", "fixture"))] | None = Field(
        None, description="The thing in whose frame they are; the world when not given."
    )
    straight: bool = Field(False, description="Along a straight line.")

    def run(self, arm: Workcell) -> None:
        """Plan and follow one free or straight motion."""
        arm.begin("move")
        wxyz = np.asarray(self.wxyz) / np.linalg.norm(self.wxyz)
        goal = (np.eye(4) if self.of is None else arm.pose(self.of)) @ make_transform(self.position, wxyz)
        if self.straight:
            arm.follow(arm.planner.plan_line(arm.look(), arm.arm_command, goal))
        else:
            arm.move_to([goal])
