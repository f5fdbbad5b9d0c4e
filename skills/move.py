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
    """Bring the tool to a point, pointing down. Fails with ``no_ik`` out of reach, ``no_path`` when blocked."""

    main = "to"
    hand = "keeps"
    to: PoseReference = Field(description="Where the tool goes: [x, y, z] in the world frame [m], or in words.")
    yaw: Radians | None = Field(None, description="Heading of the fingers' closing direction; free when not given.")
    straight: bool = Field(False, description="Along a straight line.")

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
