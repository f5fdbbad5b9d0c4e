"""Scan: view an object from all around with the wrist camera."""

from __future__ import annotations

import numpy as np

from nimbus.datagen.plugin import (
    ContainerReference,
    Field,
    FloatArray,
    Metres,
    Radians,
    Reason,
    Skill,
    SkillFailure,
    Workcell,
    register,
)

_TURNS = np.radians([0, 90, -90, 180])
_PAUSE = 3
"""Number of record periods at each view, for a few sharp images."""


@register("skill", "scan")
class Scan(Skill):
    """Move the hand to views around a thing, aimed at its center; views out of reach are omitted.

    Fails with ``no_ik`` when the arm reaches fewer than ``least`` views.
    """

    main = "object"
    hand = "keeps"
    object: ContainerReference = Field(description="Object or fixture to view.")
    views: int = Field(6, ge=2, le=36, description="Number of views around it.")
    least: int = Field(3, ge=1, le=36, description="Smallest number of views that must be reached.")
    distance: Metres = Field(0.22, gt=0.05, le=1, description="Distance from the tool to the object's center.")
    elevation: Radians = Field(1.0, gt=0.2, lt=1.5, description="Angle of the view above the horizontal.")

    def run(self, arm: Workcell) -> None:
        """Move from view to view around the object."""
        arm.begin("scan")
        lower, upper = arm.bounds(self.object)
        middle, reached = (lower + upper) / 2, 0
        for angle in np.arange(self.views) * 2 * np.pi / self.views:
            level = np.array([np.cos(angle), np.sin(angle), 0.0])
            back = np.cos(self.elevation) * level + np.sin(self.elevation) * np.array([0.0, 0.0, 1.0])
            goals = [_looking(middle + self.distance * back, -back, float(turn)) for turn in _TURNS]
            plan = arm.planner.plan_pose(arm.look(), arm.arm_command, goals, rng=arm.rng())
            if plan:
                arm.follow(plan)
                arm.wait(_PAUSE)
                reached += 1
        if reached < self.least:
            raise SkillFailure(Reason.NO_IK, f"{reached} of {self.views} views can be reached")


def _looking(position: FloatArray, sight: FloatArray, turn: float) -> FloatArray:
    """Return ``world_T_tool`` with z along the line of sight, rotated about it."""
    side = np.cross((0.0, 0.0, 1.0), sight)
    side /= np.linalg.norm(side)
    other = np.cross(sight, side)
    x = np.cos(turn) * side + np.sin(turn) * other
    pose = np.eye(4)
    pose[:3, :3] = np.stack([x, np.cross(sight, x), sight], axis=1)
    pose[:3, 3] = position
    return pose
