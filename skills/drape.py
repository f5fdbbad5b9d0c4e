"""Drape: pull a cloth over a rail by a corner, so that it hangs down on both sides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from nimbus.datagen.execute.toolkit import (
    CORNER_CLOSING,
    CORNER_ROOM,
    CarryPath,
    find_corners,
    find_frame,
    plan_straight,
    reach_carry_path,
    shift_pose,
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

_OPENING = 0.078
"""Distance of the pads before they close [m]; they must be outside of both edges of the corner."""
_INSET = 0.022
"""Distance of the hand from the corner, along the diagonal [m]; nearer to the corner, the cloth slips out."""
_OVER = 0.08
"""Height of the tool above the surface before and after [m]."""
_CLEAR = 0.07
"""Height of the tool above the rail's axis when it crosses it [m]."""
_BEYOND = 0.17
"""Distance of the hand from the rail's axis at the release [m]."""
_RAISED = 0.002
"""Rise of the hand from the grasp to the release [m], where several layers are under the finger tips."""
_LOOSE = 0.03
"""Rise of the hand after the release, before the fingers open fully [m]."""
_SLIDES = (0.06, -0.12, 0.06, 0.06, -0.12)
"""Motions of the hand along the rail, one after the other, while the cloth hooks a finger [m]."""
_ROUND = 0.5
"""Shape of the path: 1 is half an ellipse, 0 is half a rectangle."""
_STEP = 0.01
"""Distance of the poses along the path [m]."""
_LIFTED = 0.25
"""Fraction of the path after which the corner must be in the fingers."""


@register("skill", "drape")
class Drape(Skill):
    """Pinch a corner of a flat cloth, pull it over a rail, and release it on the surface behind the rail.

    The fingers close on the corner from both sides. The cloth then leaves the pads at their side and is not hooked
    by a finger. The rail is the frame ``bar`` of an object, with z along the bar. Needs an empty gripper and a cloth
    that lies flat beside the rail, a corner toward it. Fails with ``no_grasp`` when the arm cannot carry the corner,
    or with ``missed_grasp``.
    """

    main = "object"
    needs_flexible = "cloth"
    hand = "keeps"
    needs = ("empty_hand", "clear(object)")
    gives = ("draped(object, over)",)
    frames = {"over": "bar"}  # noqa: RUF012
    object: ObjectReference = Field(description="Cloth to hang.")
    over: ObjectReference = Field(description="Object with the rail.")
    speed: Annotated[float, Field(gt=0, le=0.5)] = Field(0.15, description="Speed of the hand with the cloth [m/s].")
    retries: int = Field(1, ge=0, le=10, description="Number of further tries after the corner was missed or lost.")

    def run(self, arm: Workcell) -> None:
        """Try until the corner stays in the fingers."""
        surface = arm.lowest_point(self.object)
        for _ in range(self.retries + 1):
            if self._carry_corner(arm, surface):
                return
        raise SkillFailure(Reason.MISSED_GRASP, f"the fingers did not keep a corner of {self.object}")

    def _carry_corner(self, arm: Workcell, surface: float) -> bool:
        """Pinch, carry, release and retreat; return True if the corner was in the fingers at the end of the path."""
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
        for phase, part in (("lift", lift), ("carry", carry)):
            if kept:
                arm.begin(phase)
                arm.follow(arm.planner.plan_curve(arm.look(), arm.arm_command, part, speed=self.speed))
                kept = arm.is_gripping(self.object)
        arm.begin("release")
        arm.wait(2)
        self._release(arm, surface)
        return kept

    def _release(self, arm: Workcell, surface: float) -> None:
        """Open the fingers and move them up; if the cloth hooks one, move them along the rail until it is off."""
        arm.open(room=CORNER_ROOM, steps=3)
        arm.wait(2)
        arm.begin("retreat")
        plan_straight(arm, shift_pose(arm.tool_pose(), np.array([0.0, 0.0, _LOOSE])))
        arm.open()
        for slide in _SLIDES:
            if self.object not in arm.touched_by_gripper():
                break
            plan_straight(arm, shift_pose(arm.tool_pose(), slide * arm.tool_pose()[:3, 1]))
        above = arm.tool_pose()
        above[2, 3] = surface + _OVER
        plan_straight(arm, above)

    def _carry_paths(self, arm: Workcell, surface: float) -> Iterator[CarryPath]:
        """Yield the path of the corner nearest to the rail: up beside it, and over it."""
        bar = _find_bar(arm, self.object, self.over)
        corner = max(find_corners(arm, self.object), key=lambda one: float(one.place @ bar.across[:2]))
        poses = _path(corner.pinch_pose(arm, surface, inset=_INSET, across=True), bar)
        lifted = int(_LIFTED * len(poses))
        yield poses[:lifted], poses[lifted:]


@dataclass(frozen=True, kw_only=True)
class _Bar:
    """Rail beside a cloth."""

    center: FloatArray
    """(3,) [m]"""
    across: FloatArray
    """(3,) level unit vector across the rail, away from the cloth."""


def _find_bar(arm: Workcell, cloth: str, name: str) -> _Bar:
    frame = arm.pose(name) @ find_frame(arm, name, "bar")
    across = np.array([-frame[1, 2], frame[0, 2], 0.0]) / np.linalg.norm(frame[:2, 2])
    toward = frame[:3, 3] - arm.points(cloth).mean(axis=0)
    return _Bar(center=frame[:3, 3], across=across if across @ toward >= 0.0 else -across)


def _path(start: FloatArray, bar: _Bar) -> list[FloatArray]:
    """Return tool poses (4, 4) up beside the rail, over it, and down behind it: half a rounded rectangle."""
    angles = np.linspace(np.pi, 0.0, 400)
    share = (1.0 + np.sign(np.cos(angles)) * np.abs(np.cos(angles)) ** _ROUND) / 2
    length = float((bar.center - start[:3, 3]) @ bar.across) + _BEYOND
    top = bar.center[2] + _CLEAR - start[2, 3]
    line = np.stack([share * length, np.sin(angles) ** _ROUND * (top - share * _RAISED) + share * _RAISED])
    along = np.r_[0.0, np.cumsum(np.linalg.norm(np.diff(line), axis=0))]
    poses = []
    for distance in np.linspace(0.0, along[-1], int(np.ceil(along[-1] / _STEP)) + 1):
        forward, up = (float(np.interp(distance, along, row)) for row in line)
        pose = start.copy()
        pose[:3, 3] += forward * bar.across + (0.0, 0.0, up)
        poses.append(pose)
    return poses
