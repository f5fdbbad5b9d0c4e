"""Wipe: press the held object on the surface and move it over a region."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from nimbus.datagen.execute.toolkit import find_supports, narrowest_width, plan_straight
from nimbus.datagen.plugin import (
    Field,
    FloatArray,
    Metres,
    Ratio,
    Reason,
    RegionReference,
    Skill,
    SkillFailure,
    Workcell,
    register,
)

_ABOVE = 0.04
"""Height of the approach to the region [m]."""
_SLID = 0.012
"""Largest displacement of the object in the hand [m]."""
_ROUND = 0.005
"""Width of the wiper's rounded edge, which does not touch the surface [m]."""
_FIRM = 0.6
"""Fraction of strokes at whose ends the object must touch the surface."""


@register("skill", "wipe")
class Wipe(Skill):
    """Press the held object on the surface and move it back and forth until a region is covered.

    Needs a wiper, such as a sponge or a cloth, in the gripper with its flat side down. Fails with
    ``missed_grasp`` when the gripper is empty, with ``no_ik`` or ``no_path`` when the region is out of reach, with
    ``not_wiped`` when the wiper loses contact with the surface, and with ``slipped_in_transit`` when it slides in the
    hand.
    """

    version: ClassVar[int] = 2
    main = "region"
    hand = "keeps"
    gives = ("wiped(region)",)
    region: RegionReference = Field(description="Region to wipe.")
    overlap: Ratio = Field(0.2, ge=0, lt=1, description="Overlap of neighboring strokes, as a fraction of the width.")
    press: Metres = Field(0.001, ge=0, le=0.01, description="Depth below the surface to which the hand presses.")
    speed: float = Field(0.15, gt=0, le=0.5, description="Speed of the strokes [m/s].")

    def run(self, arm: Workcell) -> None:
        """Lower, wipe stroke by stroke, and raise."""
        if (name := arm.held) is None:
            raise SkillFailure(Reason.MISSED_GRASP, "there is nothing in the gripper to wipe with")
        corners = self._corners(arm, name)
        surface = arm.stage.surfaces[arm.regions[self.region].on].upper[2]
        lower, upper = arm.bounds(name)
        offset = arm.tool_pose()[:3, 3] - [*(lower + upper)[:2] / 2, lower[2]]
        arm.begin("approach")
        arm.move_to([self._tool(arm, corners[0], surface + _ABOVE, offset)])
        held = arm.tool_T_held()
        arm.begin("wipe")
        arm.end_transport()  # the surface may move the wiper in the hand
        touched = []
        for corner in (corners[0], *corners):
            plan_straight(arm, self._tool(arm, corner, surface - self.press, offset), speed=self.speed, touching=[name])
            touched.append(bool(find_supports(arm, name)))
        arm.begin("lift")
        plan_straight(arm, self._tool(arm, corners[-1], surface + _ABOVE, offset), touching=[name])
        slid = float(np.linalg.norm((arm.tool_T_held() - held)[:3, 3]))
        if slid > _SLID:
            raise SkillFailure(Reason.SLIPPED_IN_TRANSIT, f"{name} slid {slid * 1e3:.0f} mm in the hand")
        arm.carry()
        if np.mean(touched) < _FIRM:
            raise SkillFailure(Reason.NOT_WIPED, f"{name} touched at {np.mean(touched):.0%} of the strokes")

    def _corners(self, arm: Workcell, name: str) -> list[FloatArray]:
        """Return the ends of the strokes (2,) [m], along the longer side of the region."""
        region = arm.regions[self.region]
        middle, size = np.array(region.center), np.array(region.size)
        footprint = _width(arm, name) - 2 * _ROUND
        along = int(size[1] > size[0])
        reach = np.maximum(size - footprint, 0.0) / 2
        across = 1 - along
        step = footprint * (1.0 - self.overlap)
        count = max(1, int(np.ceil(2 * reach[across] / step)) + 1)
        corners = []
        for row, shift in enumerate(np.linspace(-1.0, 1.0, count) * reach[across] if count > 1 else [0.0]):
            ends = (-1.0, 1.0) if row % 2 == 0 else (1.0, -1.0)
            for end in ends:
                corner = middle.copy()
                corner[along] += end * reach[along]
                corner[across] += shift
                corners.append(corner)
        return corners

    def _tool(self, arm: Workcell, corner: FloatArray, height: float, offset: FloatArray) -> FloatArray:
        pose = arm.tool_pose()
        pose[:3, 3] = np.append(corner, height) + offset
        return pose


def _width(arm: Workcell, name: str) -> float:
    """Return the smallest horizontal width of an object [m]; it covers a stroke of this width in any orientation."""
    return narrowest_width(arm.model(name).vertices @ arm.pose(name)[:2, :3].T)
