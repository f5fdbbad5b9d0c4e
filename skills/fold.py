"""Fold: carry a corner of a cloth onto the opposite corner."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from nimbus.datagen.execute.toolkit import (
    CORNER_CLOSING,
    CORNER_ROOM,
    CarryPath,
    ClothCorner,
    find_corners,
    reach_carry_path,
    release_upward,
)
from nimbus.datagen.plugin import (
    Field,
    FloatArray,
    ObjectReference,
    Reason,
    Skill,
    SkillFailure,
    Workcell,
    register,
)

_OPENING = 0.045
"""Distance of the pads before they close [m]; they gather the cloth between them."""
_INSET = 0.017
"""Distance of the hand from the corner, along the diagonal [m]; farther in, a tip beyond the pads hooks a finger."""
_HEIGHT = 0.36
"""Height of the arc, as a fraction of its length."""
_LAYER = 0.004
"""Rise of the hand from the start of the arc to its end, where it lies on another layer [m]."""
_OVER = 0.08
"""Height of the tool above the surface before and after [m]."""
_POSES, _LIFTED = 40, 12
"""Number of poses along the arc, and of those after which the corner must be in the fingers."""
_BEYOND = 0.005
"""Distance of the hand from the opposite corner at the release, along the diagonal [m]."""


@register("skill", "fold")
class Fold(Skill):
    """Pinch a corner of a flat cloth, carry it in an arc over the diagonal, and release it on the opposite corner.

    Needs an empty gripper and a cloth that lies flat. Takes the corner whose motion the arm can execute, the nearest
    one first. Fails with ``no_grasp`` when the arm can carry no corner, or with ``missed_grasp``.
    """

    main = "object"
    needs_flexible = "cloth"
    hand = "keeps"
    needs = ("empty_hand", "clear(object)")
    gives = ("folded(object)",)
    object: ObjectReference = Field(description="Cloth to fold.")
    speed: Annotated[float, Field(gt=0, le=0.5)] = Field(0.2, description="Speed of the hand in the arc [m/s].")
    retries: int = Field(2, ge=0, le=10, description="Number of further tries after a corner was missed or lost.")

    def run(self, arm: Workcell) -> None:
        """Try until a corner stays in the fingers."""
        surface = arm.lowest_point(self.object)
        for _ in range(self.retries + 1):
            if self._carry_corner(arm, surface):
                return
        raise SkillFailure(Reason.MISSED_GRASP, f"the fingers did not keep a corner of {self.object}")

    def _carry_corner(self, arm: Workcell, surface: float) -> bool:
        """Pinch, carry, release and retreat; return True if the corner was in the fingers at the end of the arc."""
        lift, carry = reach_carry_path(
            arm,
            self._carry_paths(arm, surface),
            opening=_OPENING,
            over=surface + _OVER,
            speed=self.speed,
            carried=f"corner of {self.object}",
        )
        arm.begin("grasp")
        kept = arm.close_on(self.object, steps=CORNER_CLOSING)
        if kept:
            arm.begin("carry")
            arm.follow(arm.planner.plan_curve(arm.look(), arm.arm_command, lift, speed=self.speed))
            kept = arm.is_gripping(self.object)
        if kept:
            arm.follow(arm.planner.plan_curve(arm.look(), arm.arm_command, carry, speed=self.speed))
            arm.wait(2)
            kept = arm.is_gripping(self.object)
        arm.begin("release")
        release_upward(arm, room=CORNER_ROOM, height=surface + _OVER)
        return kept

    def _carry_paths(self, arm: Workcell, surface: float) -> Iterator[CarryPath]:
        """Yield the arc from each corner to the opposite one, the nearest corner first."""
        for corner in find_corners(arm, self.object):
            start = corner.pinch_pose(arm, surface, inset=_INSET)
            poses = _arc(start, _end(corner, start))
            yield poses[:_LIFTED], poses[_LIFTED:]


def _end(corner: ClothCorner, start: FloatArray) -> FloatArray:
    """Return the tool pose (4, 4) on the opposite corner."""
    end = start.copy()
    end[:2, 3] = corner.opposite - _BEYOND * corner.inward
    end[2, 3] += _LAYER
    return end


def _arc(start: FloatArray, end: FloatArray) -> list[FloatArray]:
    """Return tool poses (4, 4) along a half ellipse over the cloth."""
    way = end[:3, 3] - start[:3, 3]
    height = _HEIGHT * float(np.linalg.norm(way))
    poses = []
    for angle in np.linspace(0.0, np.pi, _POSES + 1):
        pose = start.copy()
        pose[:3, 3] += (1 - np.cos(angle)) / 2 * way
        pose[2, 3] += height * np.sin(angle)
        poses.append(pose)
    return poses
