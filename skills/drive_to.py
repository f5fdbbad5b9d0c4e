"""Drive to: move the base until the tool is over a thing."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from nimbus.datagen.execute.toolkit import BASE_JOINTS, object_center
from nimbus.datagen.plugin import (
    Field,
    FloatArray,
    Radians,
    Reason,
    Skill,
    SkillFailure,
    SupportReference,
    Workcell,
    register,
)

_TURNS = np.radians([0, 45, -45, 90, -90])
"""Headings of the base that are tried [rad]."""


@register("skill", "drive_to")
class DriveTo(Skill):
    """Drive the base until the tool is over a thing or a region; the other joints keep their posture.

    Needs a robot with a driving base. Fails with ``no_ik`` when the base has no free position in its range, and with
    ``no_path`` when the path is blocked.
    """

    version: ClassVar[int] = 1
    main = "target"
    hand = "keeps"
    needs = ("moving_base",)
    target: SupportReference = Field(description="Object, fixture or region below the tool at the end.")
    turn: Radians | None = Field(None, description="Heading of the base; default: the nearest free one.")

    def run(self, arm: Workcell) -> None:
        """Plan and follow one free motion of the base."""
        arm.begin("drive")
        scene = arm.look()
        start = np.array(arm.arm_command, dtype=float)
        entries = [arm.robot.arm.joints.index(name) for name in BASE_JOINTS]
        for place in self._places(arm, start[entries]):
            goal = start.copy()
            goal[entries] = place
            low, high = scene.limits[entries].T
            if np.all((low <= place) & (place <= high)) and not scene.in_collision(goal):
                arm.move_joints(goal)
                return
        raise SkillFailure(Reason.NO_IK, f"no free place of the base for {self.target}")

    def _places(self, arm: Workcell, now: FloatArray) -> list[FloatArray]:
        """Return base positions (3,) [m, m, rad] with the tool over the target, the nearest first."""
        origin = arm.pose("base_origin")
        to_base = origin[:2, :2].T
        tool = to_base @ (arm.tool_pose()[:2, 3] - origin[:2, 3]) - now[:2]
        ahead = _rotation(-now[2]) @ tool
        target = to_base @ (_center(arm, self.target) - origin[:2, 3])
        turns = _TURNS if self.turn is None else [self.turn]
        places = [np.append(target - _rotation(float(turn)) @ ahead, turn) for turn in turns]
        return sorted(places, key=lambda place: float(np.abs(place - now).sum()))


def _rotation(angle: float) -> FloatArray:
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def _center(arm: Workcell, name: str) -> FloatArray:
    """Return the center (2,) of an object, a fixture or a region, x and y in the world [m]."""
    if name in arm.regions:
        return np.array(arm.regions[name].center, dtype=float)
    return object_center(arm, name)
