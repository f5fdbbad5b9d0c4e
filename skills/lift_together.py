"""Lift together: two arms grasp a large object at opposite ends and lift it level."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import ClassVar

import numpy as np

from nimbus.datagen.execute.toolkit import Grasp, GraspPlan, trace_line
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

_SPEED = 0.10
"""Mean speed of the lift [m/s]."""
_SLACK = 0.4
"""Smallest distance from the object's center to a grasp, toward the arm, as a fraction of the object's half length."""
_LEVEL = np.radians(6)
"""Largest tilt of the object at the end [rad]."""


@register("skill", "lift_together")
class LiftTogether(Skill):
    """Grasp an object by two opposite sides with two arms, and lift it level.

    Needs a robot with two arms and empty grippers. Each arm grasps on its own side, then both tools rise in step. Fails
    with ``no_ik`` when a tool cannot reach the height, or with ``no_grasp``, ``missed_grasp``, ``slipped_at_lift``
    or ``gripper_not_clear``.
    """

    version: ClassVar[int] = 2
    main = "object"
    needs = ("two_arms",)
    gives = ("lifted(object)",)
    object: ObjectReference = Field(description="Object to lift.")
    height: Metres = Field(0.12, gt=0, le=0.5, description="Height of the lift.")
    arms: tuple[str, str] = Field(("left", "right"), description="The two arms.")

    def run(self, arm: Workcell) -> None:
        """Grasp at both ends, then lift."""
        pair = [arm.arm(name) for name in self.arms]
        for one in pair:
            if one.held:
                raise SkillFailure(Reason.GRIPPER_NOT_CLEAR, f"{one.held} is still in the gripper")
        plans = [self._plan(one) for one in pair]
        for phase, works in (("reach", self._reach), ("grasp", self._close)):
            arm.begin(phase)
            arm.together({one.name: self._work(works, one, plan) for one, plan in zip(pair, plans, strict=True)})
        arm.begin("lift")
        paths = [self._up(one) for one in pair]
        arm.together({one.name: partial(_go, one, path) for one, path in zip(pair, paths, strict=True)})
        self._check(pair)

    def _work(self, work: Callable[[Workcell, GraspPlan], None], one: Workcell, plan: GraspPlan) -> Callable[[], None]:
        return partial(work, one, plan)

    def _plan(self, one: Workcell) -> GraspPlan:
        """Plan a grasp on the arm's own side of the object."""
        middle = one.pose(self.object)[:3, 3]
        aside = (one.pose(one.base_link())[:3, 3] - middle) * (0.0, 1.0, 0.0)
        side = aside / max(float(np.linalg.norm(aside)), 1e-9)
        low, high = one.bounds(self.object)
        least = _SLACK * float((high - low)[1]) / 2
        grasps = [grasp for grasp in one.grasps(self.object, limit=200) if _offset(grasp, middle, side) > least]
        grasps.sort(key=lambda grasp: -abs(float(grasp.world_T_tool[1, 1])))
        plan = one.planner.plan_grasp(
            one.look(),
            one.arm_command,
            [grasp.world_T_tool for grasp in grasps[:40]],
            self.object,
            rng=one.rng(),
            lift_height=0.01,
        )
        if not plan:
            counts = ", ".join(f"{count} {status}" for status, count in plan.attempts.items())
            raise SkillFailure(Reason.NO_GRASP, f"{one.name}: {counts or 'no grasp on its side'}")
        return plan

    def _reach(self, one: Workcell, plan: GraspPlan) -> None:
        one.follow_all(plan.approach, plan.reach)

    def _close(self, one: Workcell, plan: GraspPlan) -> None:
        if not one.close_on(self.object):
            raise SkillFailure(Reason.MISSED_GRASP, f"the fingers of {one.name} closed beside {self.object}")

    def _up(self, one: Workcell) -> FloatArray:
        """Return postures (N, J) of a straight lift, one per record period [rad or m]."""
        goal = one.tool_pose()
        goal[2, 3] += self.height
        path = trace_line(one.look(), one.arm_command, goal)
        if path is None:
            raise SkillFailure(Reason.NO_IK, f"{one.name} cannot lift it so high")
        rows = round(1.5 * self.height / _SPEED * one.simulation.rate)
        share = np.linspace(0.0, 1.0, rows + 1)
        # A minimum-jerk profile from rest to rest. Both tools use it and are therefore always at the same height.
        at = (10 * share**3 - 15 * share**4 + 6 * share**5) * (len(path) - 1)
        below = np.minimum(at.astype(int), len(path) - 2)
        return path[below] + (at - below)[:, None] * (path[below + 1] - path[below])

    def _check(self, pair: list[Workcell]) -> None:
        for one in pair:
            if not one.is_gripping(self.object):
                raise SkillFailure(Reason.SLIPPED_AT_LIFT, f"{self.object} slipped out of the hand of {one.name}")
        lean = float(np.arccos(np.clip(pair[0].pose(self.object)[2, 2], -1.0, 1.0)))
        if lean > _LEVEL:
            raise SkillFailure(Reason.SLIPPED_AT_LIFT, f"{self.object} leans by {np.degrees(lean):.0f} deg")


def _offset(grasp: Grasp, middle: FloatArray, side: FloatArray) -> float:
    return float((grasp.world_T_tool[:3, 3] - middle) @ side)


def _go(one: Workcell, path: FloatArray) -> None:
    for posture in path[1:]:
        one.command(posture)
