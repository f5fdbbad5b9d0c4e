"""Rotate: turn an object about the vertical in its place, with several grasps if one is not enough."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from nimbus.datagen import registry
from nimbus.datagen.execute.toolkit import ReleaseSpot, nearest_rest_pose, object_center, release_poses, set_down
from nimbus.datagen.plugin import (
    Field,
    ObjectReference,
    Radians,
    Reason,
    Skill,
    SkillFailure,
    Workcell,
    quat_to_matrix,
    register,
)

_LIFT = 0.03
"""Height of the lift before the rotation [m]."""
_SHARES = (1.0, 0.75, 0.5, 0.35)
"""Fractions of the remaining angle; each grasp turns the object by the first one that the arm can reach."""
_BEYOND_REACH = (Reason.NO_IK, Reason.NO_PATH, Reason.NO_ROOM)
"""Failures after which a smaller angle is tried."""


@register("skill", "rotate")
class Rotate(Skill):
    """Rotate an object about the vertical by an angle, in its place and with one or more grasps.

    Needs an empty gripper. Each grasp turns the object as far as the wrist can; the object is then set down and grasped
    again. Fails with the reasons of ``pick`` (``no_grasp``, ``missed_grasp``, ``slipped_at_lift``, ``knocked_over``),
    or with ``no_ik``, ``no_path``, ``no_room``, ``off_target`` or ``toppled``.
    """

    version: ClassVar[int] = 2
    main = "object"
    hand = "keeps"
    needs = ("empty_hand", "clear(object)", "graspable(object)")
    gives = ("rotated(object)",)
    object: ObjectReference = Field(description="Object to rotate.")
    by: Radians = Field(np.pi / 2, ge=-2 * np.pi, le=2 * np.pi, description="Angle, counterclockwise from above.")
    grasps: int = Field(4, ge=1, le=10, description="Largest number of grasps.")
    tolerance: Radians = Field(0.15, gt=0, le=1, description="Largest deviation from the angle at the end.")

    def run(self, arm: Workcell) -> None:
        """Grasp, turn and set down until the angle is reached."""
        rest = nearest_rest_pose(arm.model(self.object), arm.pose(self.object)[:3, :3])
        left, spot = self.by, ReleaseSpot(object_center(arm, self.object), room=None)
        for _ in range(self.grasps):
            before = _yaw(arm, self.object, quat_to_matrix(rest.wxyz))
            registry.lookup("skill", "pick")(object=self.object, lift=_LIFT).run(arm)
            top = arm.bounds(self.object)[1][2]
            for share in _SHARES:
                ways = list(release_poses(arm, self.object, [spot], rest=rest, yaws=[before + left * share], top=top))
                try:
                    set_down(arm, self.object, ways, rest=rest)
                    break
                except SkillFailure as failure:
                    if arm.held is None or share == _SHARES[-1] or failure.reason not in _BEYOND_REACH:
                        raise
            left -= _wrapped(_yaw(arm, self.object, quat_to_matrix(rest.wxyz)) - before, near=left)
            if abs(left) <= self.tolerance:
                return
        raise SkillFailure(Reason.OFF_TARGET, f"{self.object} is {abs(left):.2f} rad short")


def _yaw(arm: Workcell, name: str, rest: np.ndarray) -> float:
    turn = arm.pose(name)[:3, :3] @ rest.T
    return float(np.arctan2(turn[1, 0], turn[0, 0]))


def _wrapped(angle: float, *, near: float) -> float:
    """Shift an angle by full turns so that it has the sign of ``near``, unless it is small [rad]."""
    angle = (angle + np.pi) % (2 * np.pi) - np.pi
    if near > 0 and angle < -0.5:
        angle += 2 * np.pi
    if near < 0 and angle > 0.5:
        angle -= 2 * np.pi
    return float(angle)
