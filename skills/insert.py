"""Insert: put the held peg into a hole."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nimbus.datagen.execute.toolkit import Alignment, find_frame, make_facing_pose, retreat, shift_pose
from nimbus.datagen.plugin import (
    Field,
    FloatArray,
    Metres,
    ObjectReference,
    Reason,
    Skill,
    SkillFailure,
    Workcell,
    register,
)

_ABOVE, _NEAR = 0.06, 0.003
"""Heights above the mouth at which the straight descent begins, and at which the search begins [m]."""
_PRESS = 0.004
"""Depth to which the peg is pressed at each position of the search [m]."""
_ENTERED = 0.0025
"""Depth at which the tip counts as inside the hole [m]."""
_SHARE = 0.6
"""Fraction of the hole's depth that the tip must reach."""
_TURNS = np.radians([0, 90, 180, 270])


@register("skill", "insert")
class Insert(Skill):
    """Insert the held peg into a hole, tip first; search in a spiral when the tip meets the rim.

    Needs the peg in the gripper. The peg needs a frame ``tip``; the board needs a frame and a cavity with the name of
    the hole. A square peg is rotated until its sides align with the hole. Fails with ``no_ik``, ``no_path``,
    ``not_inserted``, or with ``tracking_error`` when the peg jams.
    """

    main = "object"
    frames = {"object": "tip", "into": "{hole}"}
    needs = ("held(object)", "peg_for(object, into)")
    gives = ("inserted(object, into)", "empty_hand")
    object: ObjectReference = Field(description="Peg to insert; it must be in the gripper.")
    into: ObjectReference = Field(description="Object with the hole.")
    hole: str = Field("hole", description="Name of the hole.")
    search: Metres = Field(0.003, ge=0, le=0.02, description="Radius of the search for the hole.")

    def run(self, arm: Workcell) -> None:
        """Move above the hole, search, insert, and release."""
        mouth = arm.pose(self.into) @ find_frame(arm, self.into, self.hole)
        depth = self._depth(arm)
        peg = Alignment(arm, self.object, find_frame(arm, self.object, "tip"), touching=[self.into])
        up = mouth[:3, 2]
        arm.begin("carry")
        ends = make_facing_pose(mouth, turns=_TURNS)
        goal = peg.carry([shift_pose(end, _ABOVE * up) for end in ends], ends)
        arm.begin("search")
        arm.end_transport()  # from here on the board may move the peg in the hand
        self._enter(arm, peg, goal, up)
        arm.begin("insert")
        sideways = peg.frame[:3, 3] - goal[:3, 3]
        sideways -= up * (sideways @ up)
        peg.line(shift_pose(goal, sideways - (depth - 0.001) * up))
        arm.wait(2)
        arm.begin("release")
        arm.open(room=0.01, steps=4)
        arm.begin("retreat")
        retreat(arm, self.object, touching=[self.into])
        reached = float((mouth[:3, 3] - peg.frame[:3, 3]) @ up)
        if reached < _SHARE * depth:
            raise SkillFailure(
                Reason.NOT_INSERTED, f"{self.object} is {reached * 1e3:.0f} mm of {depth * 1e3:.0f} deep"
            )

    def _depth(self, arm: Workcell) -> float:
        low, high = arm.model(self.into).cavities[self.hole]
        return float(high[2] - low[2])

    def _enter(self, arm: Workcell, peg: Alignment, goal: FloatArray, up: FloatArray) -> None:
        """Press the peg down slowly at one point after another until the tip enters the hole."""
        reached = 0.0
        for offset in _spiral(self.search):
            way = goal[:3, :2] @ offset
            peg.line(shift_pose(goal, way + _NEAR * up))
            peg.line(shift_pose(goal, way - _PRESS * up), speed=0.04)
            arm.wait(1)
            reached = float((goal[:3, 3] - peg.frame[:3, 3]) @ up)
            if reached > _ENTERED:
                return
        raise SkillFailure(Reason.NOT_INSERTED, f"{self.object} did not find the hole")


def _spiral(radius: float) -> Iterator[FloatArray]:
    """Yield offsets (2,) [m]: zero, then points on a growing spiral."""
    yield np.zeros(2)
    for share in (0.35, 0.7, 1.0):
        for angle in np.arange(6) * np.pi / 3 + share:
            yield radius * share * np.array([np.cos(angle), np.sin(angle)])
