"""Go to pose: bring the tool to a position and an orientation."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from nimbus.datagen.plugin import Field, Metres, Quaternion, Reference, Skill, Workcell, make_transform, register


@register("skill", "go_to_pose")
class GoToPose(Skill):
    """Bring the tool to a pose in the world, or in the frame of a thing.

    Fails with ``no_ik`` when the pose is out of reach or in collision, and with ``no_path`` when the path is blocked.
    """

    position: tuple[Metres, Metres, Metres] = Field(description="Target position of the tool [m].")
    wxyz: Quaternion = Field((0.0, 1.0, 0.0, 0.0), description="Target orientation of the tool; default: down.")
    of: Annotated[str, Reference(("object", "fixture"))] | None = Field(
        None, description="Thing in whose frame position and orientation are given; default: the world."
    )
    straight: bool = Field(False, description="Move along a straight line.")

    def run(self, arm: Workcell) -> None:
        """Plan and follow one free or straight motion."""
        arm.begin("move")
        wxyz = np.asarray(self.wxyz) / np.linalg.norm(self.wxyz)
        goal = (np.eye(4) if self.of is None else arm.pose(self.of)) @ make_transform(self.position, wxyz)
        if self.straight:
            arm.follow(arm.planner.plan_line(arm.look(), arm.arm_command, goal))
        else:
            arm.move_to([goal])
