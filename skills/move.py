"""Move: bring the tool to a point."""

from __future__ import annotations

import numpy as np

from nimbus.datagen.plugin import (
    Field,
    PoseReference,
    Radians,
    Skill,
    Workcell,
    make_transform,
    quat_from_axis_angle,
    register,
)

_TURNS = np.radians([0, 45, -45, 90, -90, 135, -135, 180])
_DOWN = quat_from_axis_angle((1, 0, 0), np.pi)


@register("skill", "move")
class Move(Skill):
    """Move the tool, pointing down, to a point.

    Fails with ``no_ik`` when the point is out of reach, and with ``no_path`` when the path is blocked.
    """

    main = "to"
    hand = "keeps"
    to: PoseReference = Field(description="Target of the tool: [x, y, z] in the world frame [m], or a reference.")
    yaw: Radians | None = Field(None, description="Rotation of the hand about the vertical; default: any.")
    straight: bool = Field(False, description="Move along a straight line.")

    def run(self, arm: Workcell) -> None:
        """Plan and follow one free or straight motion."""
        arm.begin("move")
        turns = _TURNS if self.yaw is None else [self.yaw]
        goals = [
            make_transform(self.to, quat_from_axis_angle((0, 0, 1), float(turn))) @ make_transform((0, 0, 0), _DOWN)
            for turn in turns
        ]
        if not self.straight:
            arm.move_to(goals)
        else:
            here = arm.tool_pose()
            here[:3, 3] = self.to
            goal = here if self.yaw is None else goals[0]
            arm.follow(arm.planner.plan_line(arm.look(), arm.arm_command, goal))
