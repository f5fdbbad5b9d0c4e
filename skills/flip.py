"""Flip: turn an object upside down and put it down."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from nimbus.datagen.execute.failure import SkillFailure
from nimbus.datagen.execute.release import Release, Spot, nearest_rest, releases
from nimbus.datagen.execute.setting_down import set_down
from nimbus.datagen.execute.side_grasps import side_grasps
from nimbus.datagen.execute.strokes import middle
from nimbus.datagen.execute.workcell import Workcell
from nimbus.datagen.objects.model import RestPose
from nimbus.datagen.plan.grasp import Grasp
from nimbus.datagen.quantities import Metres
from nimbus.datagen.registry import register
from nimbus.datagen.rotations import from_matrix, rotation_about, to_matrix
from nimbus.datagen.skill import ObjectReference, Skill
from nimbus.datagen.trajectory import Reason

Float = NDArray[np.float64]

_YAWS = np.radians(np.arange(0, 360, 30))
_LEVEL = 1.35
"""[rad] Least tilt from straight down: only a nearly level hand can roll an object over."""
_MOST = 12
"""Grasps that are tried."""


@register("skill", "flip")
class Flip(Skill):
    """Take an object from the side, roll it over about the hand's axis and put it down upside down.

    Needs an empty gripper, and an object at least about 8 cm high that can stand on its top. Fails with ``no_grasp``
    when no hand from the side can be turned over there, ``missed_grasp``, ``slipped_at_lift``, ``toppled``.
    """

    main = "object"
    hand = "keeps"
    object: ObjectReference = Field(description="What to flip.")
    lift: Metres = Field(0.10, gt=0, le=0.4, description="How far it is lifted before it turns.")

    def run(self, arm: Workcell) -> None:
        """Grasp from the side, lift, put down turned."""
        if arm.held:
            raise SkillFailure(Reason.GRIPPER_NOT_CLEAR, f"{arm.held} is still in the gripper")
        rest = _turned_over(arm, self.object)
        spot = Spot(middle(arm, self.object), room=None)
        grasps = [
            grasp for grasp in side_grasps(arm, self.object, least_tilt=_LEVEL) if self._can_turn(arm, grasp, rest)
        ][:_MOST]
        plan = arm.planner.plan_grasp(
            arm.look(),
            arm.arm_command,
            [grasp.world_T_tool for grasp in grasps],
            self.object,
            rng=arm.rng(),
            lift_height=self.lift,
        )
        if not plan:
            counts = ", ".join(f"{count} {status}" for status, count in plan.attempts.items())
            raise SkillFailure(Reason.NO_GRASP, counts or "no grasp from the side can be turned over")
        arm.begin("reach")
        arm.follow_all(plan.approach, plan.reach)
        arm.begin("grasp")
        if not arm.close_on(self.object):
            raise SkillFailure(Reason.MISSED_GRASP, f"the fingers closed beside {self.object}")
        arm.begin("lift")
        lifted = arm.tool_pose()
        lifted[2, 3] += self.lift
        arm.follow(arm.planner.plan_line(arm.look(), arm.arm_command, lifted))
        if not arm.meter.touching(self.object, arm.robot.gripper.fingers):
            raise SkillFailure(Reason.SLIPPED_AT_LIFT, f"{self.object} slipped out of the fingers")
        arm.carry()
        set_down(arm, self.object, self._releases(arm, rest, spot), rest=rest)

    def _can_turn(self, arm: Workcell, grasp: Grasp, rest: RestPose) -> bool:
        """Whether the arm reaches the grasp, and a pose in which the object lies turned over where it was."""
        scene = arm.scene
        if scene.arm.solve(grasp.world_T_tool, arm.arm_command) is None:
            return False
        target = arm.pose(self.object)
        for yaw in _YAWS:
            target[:3, :3] = to_matrix(rotation_about((0, 0, 1), float(yaw))) @ to_matrix(rest.wxyz)
            q = scene.arm.solve(target @ grasp.object_T_tool, arm.arm_command)
            if q is not None and not any("world" in pair for pair in scene.contacts(q)):
                return True
        return False

    def _releases(self, arm: Workcell, rest: RestPose, spot: Spot) -> Iterator[Release]:
        turn = arm.pose(self.object)[:3, :3] @ to_matrix(rest.wxyz).T
        first = float(np.arctan2(turn[1, 0], turn[0, 0]))
        yaws = [first + float(yaw) for yaw in _YAWS]
        top = arm.start_poses[self.object][2, 3] + 0.3
        return releases(arm, self.object, [spot], rest=rest, yaws=yaws, top=top)


def _turned_over(arm: Workcell, name: str) -> RestPose:
    """The rest pose with what is now its lower side up."""
    model = arm.model(name)
    now = to_matrix(nearest_rest(model, arm.pose(name)[:3, :3]).wxyz)
    over = np.diag([1.0, -1.0, -1.0]) @ now
    heights = model.vertices @ over[2]
    return RestPose(name="inverted", wxyz=from_matrix(over), height=float(-heights.min()), tilt_margin=0.0)
