"""Catch: pick a moving object, for example from a conveyor."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from nimbus.datagen.execute.toolkit import Grasp, Tracker, track_object, velocity
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

_DOWN, _CLOSE, _UP = 15, 6, 10
"""Numbers of record periods for the descent, for closing the fingers, and for the lift."""
_MOST = 12
"""Largest number of grasps that are tried."""


@register("skill", "catch")
class Catch(Skill):
    """Grasp an object that moves at a constant velocity, and lift it.

    The meeting point is predicted from the measured velocity. Needs an empty gripper. Fails with ``no_grasp`` when no
    meeting point can be reached, with ``no_ik`` when the object moves out of reach, with ``missed_grasp``, or with
    ``slipped_at_lift``.
    """

    version: ClassVar[int] = 2
    main = "object"
    needs = ("empty_hand", "on_belt(object)", "graspable(object)")
    gives = ("held(object)",)
    object: ObjectReference = Field(description="Object to catch.")
    approach: Metres = Field(0.07, gt=0, le=0.3, description="Length of the approach.")
    lift: Metres = Field(0.1, gt=0, le=0.5, description="Height of the lift.")

    def run(self, arm: Workcell) -> None:
        """Measure the object's velocity, meet it, and move with it."""
        arm.begin("look")
        speed = velocity(arm, self.object)
        arm.begin("approach")
        grasp = self._meet(arm, speed)
        tracker = Tracker(arm, self.object, speed)
        arm.begin("reach")
        for share in np.linspace(1.0, 0.0, _DOWN):
            tracker.step(_backed(grasp.object_T_tool, self.approach * float(share)))
        arm.begin("grasp")
        arm.expect_contact(self.object)
        for opening in np.linspace(arm.opening, arm.robot.gripper.closed, _CLOSE):
            tracker.step(grasp.object_T_tool, opening=float(opening))
        if not arm.close_on(self.object, steps=1):
            raise SkillFailure(Reason.MISSED_GRASP, f"the fingers closed next to {self.object}")
        arm.begin("lift")
        lifted = arm.tool_pose()
        lifted[2, 3] += self.lift
        scene = arm.look()
        arm.follow(arm.planner.plan_line(scene, arm.arm_command, lifted))
        if not arm.is_gripping(self.object):
            raise SkillFailure(Reason.SLIPPED_AT_LIFT, f"{self.object} slipped out of the fingers")
        arm.carry()

    def _meet(self, arm: Workcell, speed: FloatArray) -> Grasp:
        """Move above the first reachable grasp; grasps that do not close along the object's motion come first."""
        way = speed / max(float(np.linalg.norm(speed)), 1e-9)
        grasps = sorted(arm.grasps(self.object), key=lambda grasp: abs(float(grasp.world_T_tool[:3, 1] @ way)) > 0.5)
        failure = SkillFailure(Reason.NO_GRASP, "no grasp of this shape")
        for grasp in grasps[:_MOST]:
            try:
                track_object(arm, self.object, speed, _backed(grasp.object_T_tool, self.approach))
                return grasp
            except SkillFailure as error:
                if error.reason not in (Reason.NO_IK, Reason.NO_PATH):
                    raise
                failure = SkillFailure(Reason.NO_GRASP, error.detail)
        raise failure


def _backed(object_T_tool: FloatArray, distance: float) -> FloatArray:
    """Move the tool back along its approach [m]."""
    backed = object_T_tool.copy()
    backed[:3, 3] -= distance * object_T_tool[:3, 2]
    return backed
