"""Pick: grasp an object and lift it."""

from __future__ import annotations

import math
from typing import Annotated, ClassVar

import numpy as np

from nimbus.datagen.execute.toolkit import Grasp, GraspPlan, make_tilted_grasps, retreat, set_fingers
from nimbus.datagen.plugin import (
    Field,
    Metres,
    ObjectReference,
    Ratio,
    Reason,
    Skill,
    SkillFailure,
    Workcell,
    register,
)

_THIN, _HALF_OPEN = 0.025, 0.045
"""Largest width of a grasp that half-open fingers can reach, and their opening [m]."""
_LEANING = 0.5
"""Smallest tilt from straight down of a grasp from the side [rad]."""
_MOVED = 0.03
"""Displacement at which an object counts as knocked over, or as slid in the fingers [m]."""


@register("skill", "pick")
class Pick(Skill):
    """Grasp an object and lift it.

    Needs an empty gripper. Tries grasps until one can be reached. Grasps near the canonical one come first: straight
    down on the object's center, with the heading nearest to that of the home posture. Tries another grasp when the
    fingers miss the object or the object slips out during the lift. Fails with ``no_grasp``, ``missed_grasp``,
    ``slipped_at_lift`` or ``knocked_over``.
    """

    version: ClassVar[int] = 2
    main = "object"
    needs = ("empty_hand", "clear(object)", "graspable(object)")
    gives = ("held(object)",)
    object: ObjectReference = Field(description="Object to pick.")
    lift: Metres = Field(0.07, gt=0, le=0.5, description="Height of the lift.")
    approach: Metres = Field(0.07, gt=0, le=0.3, description="Length of the straight approach.")
    retries: int = Field(2, ge=0, le=10, description="Number of further tries after a miss or a slip.")
    side: bool | None = Field(None, description="Grasp the object around its body with a tilted hand, as for pouring.")
    spread: Annotated[Ratio, Field(gt=0, le=1)] | None = Field(
        None,
        description="Draw the grasp from this fraction of all grasps, the firmest ones, for variety; default: the "
        "canonical grasp.",
    )

    def run(self, arm: Workcell) -> None:
        """Try grasps until the object is lifted."""
        if (picked := arm.objects.get(self.object)) and picked.anchored:
            raise SkillFailure(Reason.NO_GRASP, f"{self.object} stands fixed: a {picked.kind} cannot be picked")
        failure = SkillFailure(Reason.NO_GRASP)
        tried: list[Grasp] = []
        for _ in range(self.retries + 1):
            try:
                self._try(arm, tried)
                return
            except SkillFailure as error:
                if error.reason not in (Reason.MISSED_GRASP, Reason.SLIPPED_AT_LIFT):
                    raise
                failure = error
                self._back_off(arm)
        raise failure

    def _try(self, arm: Workcell, tried: list[Grasp]) -> None:
        grasps = [grasp for grasp in self._grasps(arm) if not any(map(grasp.resembles, tried))]
        plan = self._plan(arm, grasps)
        if not plan and self.spread is None and not self.side:
            # In clutter, only grasps far from the canonical one may be reachable.
            grasps = [
                grasp for grasp in arm.grasps(self.object, canonical=False) if not any(map(grasp.resembles, tried))
            ]
            plan = self._plan(arm, grasps)
        thin = [grasp for grasp in grasps if grasp.width <= _THIN]
        if not plan and thin:
            # Half-open fingers fit into holes and between neighboring objects.
            set_fingers(arm, _HALF_OPEN)
            grasps, plan = thin, self._plan(arm, thin)
        if not plan:
            raise self._unreachable(arm, plan.attempts)
        grasp = grasps[plan.grasp_index]
        tried.append(grasp)
        arm.begin("reach")
        arm.note(grasp_tilt=grasp.tilt, grasp_width=grasp.width)
        arm.follow_all(plan.approach, plan.reach)
        arm.begin("grasp")
        if not arm.close_on(self.object):
            raise SkillFailure(Reason.MISSED_GRASP, f"the fingers closed next to {self.object}")
        arm.begin("lift")
        # Closing fingers may turn the object or push the hand away; the lift starts at the actual pose.
        before, lifted = arm.tool_T_held(), arm.tool_pose()
        lifted[2, 3] += self.lift
        lift = arm.planner.plan_line(arm.look(), arm.arm_command, lifted)
        if not lift:
            raise SkillFailure(Reason.MISSED_GRASP, f"{self.object} sits badly in the fingers: {lift.detail}")
        arm.follow(lift)
        if not arm.is_gripping(self.object):
            raise SkillFailure(Reason.SLIPPED_AT_LIFT, f"{self.object} slipped out of the fingers")
        if np.linalg.norm((arm.tool_T_held() - before)[:3, 3]) > _MOVED:
            raise SkillFailure(Reason.SLIPPED_AT_LIFT, f"{self.object} slid in the fingers")
        arm.carry()

    def _grasps(self, arm: Workcell) -> list[Grasp]:
        if self.side:
            known = make_tilted_grasps(arm, self.object, least_tilt=_LEANING)
        else:
            known = arm.grasps(self.object, canonical=self.spread is None)
        if self.spread is None:
            return known
        count = math.ceil(self.spread * len(known))
        return [known[int(place)] for place in arm.rng().permutation(count)] + known[count:]

    def _plan(self, arm: Workcell, grasps: list[Grasp]) -> GraspPlan:
        return arm.planner.plan_grasp(
            arm.look(),
            arm.arm_command,
            [grasp.world_T_tool for grasp in grasps],
            self.object,
            rng=arm.rng(),
            approach_distance=self.approach,
            lift_height=self.lift,
            in_order=self.spread is not None or not self.side,
        )

    def _unreachable(self, arm: Workcell, attempts: dict[str, int]) -> SkillFailure:
        moved = np.linalg.norm((arm.pose(self.object) - arm.start_poses[self.object])[:3, 3])
        if moved > _MOVED:
            return SkillFailure(Reason.KNOCKED_OVER, f"{self.object} was moved by {moved * 100:.0f} cm")
        counts = ", ".join(f"{count} {status}" for status, count in attempts.items())
        if why := arm.model(self.object).not_graspable:
            counts = f"not graspable at its import, {why}" + (f"; {counts}" if counts else "")
        return SkillFailure(Reason.NO_GRASP, counts or "no grasp of this shape")

    def _back_off(self, arm: Workcell) -> None:
        """Open the fingers and move straight up, so that the next try starts without contacts."""
        arm.begin("back off")
        arm.open()
        retreat(arm, self.object, ways=[np.array([0.0, 0.0, self.lift])], among_released=False, speed=0.25)
