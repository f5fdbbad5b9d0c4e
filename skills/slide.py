"""Slide: drag a grasped object along the surface."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np

from nimbus.datagen.execute.toolkit import object_center, plan_straight
from nimbus.datagen.plugin import (
    Field,
    Metres,
    ObjectReference,
    Radians,
    Reason,
    RegionReference,
    Skill,
    SkillFailure,
    Workcell,
    quat_from_axis_angle,
    quat_to_matrix,
    register,
)

_HOVER = 0.001
"""Rise of the hand while it drags, so that the object does not dig in [m]."""


@register("skill", "slide")
class Slide(Skill):
    """Grasp an object without lifting it, drag it along the surface into a region, and release it.

    Needs an empty gripper and a free line from the object to the region. Fails with ``no_path`` when the line is
    blocked, with ``off_target`` when the object slips out of the fingers, or with ``no_grasp`` or ``missed_grasp``.
    """

    version: ClassVar[int] = 2
    main = "object"
    hand = "keeps"
    needs = ("empty_hand", "clear(object)", "slides(object)")
    gives = ("at(object, to)",)
    object: ObjectReference = Field(description="Object to slide.")
    to: RegionReference = Field(description="Region; its center is the target.")
    turn: Radians | None = Field(None, description="Rotation of the object about the vertical on the way; default: 0.")
    tolerance: Annotated[Metres, Field(gt=0, le=0.2)] = Field(
        0.02, description="Largest distance from the target at the end."
    )

    def run(self, arm: Workcell) -> None:
        """Grasp, drag, release and retreat."""
        grasps = [grasp.world_T_tool for grasp in arm.grasps(self.object)]
        plan = arm.planner.plan_grasp(arm.look(), arm.arm_command, grasps, self.object, rng=arm.rng(), in_order=True)
        if not plan:
            raise SkillFailure(Reason.NO_GRASP, plan.detail or "no grasp of this shape")
        arm.begin("reach")
        arm.follow_all(plan.approach, plan.reach)
        arm.begin("grasp")
        if not arm.close_on(self.object):
            raise SkillFailure(Reason.MISSED_GRASP, f"the fingers closed next to {self.object}")
        arm.begin("slide")
        target = np.array(arm.regions[self.to].center)
        start, place = arm.tool_pose(), object_center(arm, self.object)
        turn = quat_to_matrix(quat_from_axis_angle((0, 0, 1), self.turn or 0.0))
        goal = start.copy()
        goal[:3, :3] = turn @ start[:3, :3]
        goal[:2, 3] = target + (turn[:2, :2] @ (start[:2, 3] - place))
        goal[2, 3] += _HOVER
        plan_straight(arm, goal, speed=0.2, touching=[self.object])
        arm.wait(2)
        arm.begin("release")
        arm.open(room=0.01, steps=3)
        arm.begin("retreat")
        above = arm.tool_pose()
        above[:3, 3] -= 0.1 * above[:3, 2]
        plan_straight(arm, above, touching=[self.object])
        arm.open()
        off = float(np.linalg.norm(object_center(arm, self.object) - target))
        if off > self.tolerance:
            raise SkillFailure(Reason.OFF_TARGET, f"{self.object} is {off * 100:.1f} cm off")
