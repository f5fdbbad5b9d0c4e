"""Flip: turn an object upside down over its side."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from nimbus.datagen.execute.toolkit import (
    Grasp,
    ObjectModel,
    Release,
    ReleaseSpot,
    RestPose,
    heading,
    make_tilted_grasps,
    nearest_rest_pose,
    object_center,
    release_poses,
    set_down,
)
from nimbus.datagen.plugin import (
    Field,
    FloatArray,
    Metres,
    ObjectReference,
    Reason,
    Skill,
    SkillFailure,
    Workcell,
    quat_from_axis_angle,
    quat_from_matrix,
    quat_to_matrix,
    register,
)

_TILT = 0.5
"""Smallest angle between the hand and straight down for a quarter turn of the object [rad]."""
_YAWS = np.radians(np.arange(0, 360, 45))
_MOST = 10
"""Largest number of grasps that are tried."""


@register("skill", "flip")
class Flip(Skill):
    """Roll an object over by two quarter turns, each with a tilted hand that rotates about its approach.

    Needs an empty gripper, and an object that can rest on its sides and upside down, such as a block. Fails with
    ``no_grasp`` when no grasp allows the rotation, with ``no_room`` when there is no space to put the object down, or
    with ``missed_grasp``, ``slipped_at_lift``, ``off_target`` or ``toppled``.
    """

    version: ClassVar[int] = 3
    main = "object"
    hand = "keeps"
    needs = ("empty_hand", "clear(object)", "graspable(object)", "boxlike(object)")
    gives = ("inverted(object)",)
    object: ObjectReference = Field(description="Object to flip.")
    lift: Metres = Field(0.08, gt=0, le=0.4, description="Height of the lift before the rotation.")

    def run(self, arm: Workcell) -> None:
        """Roll the object by a quarter turn, twice."""
        model = arm.model(self.object)
        now = quat_to_matrix(nearest_rest_pose(model, arm.pose(self.object)[:3, :3]).wxyz)
        quarters = [quat_from_axis_angle(axis, angle) for axis in np.eye(3)[:2] for angle in (np.pi / 2, -np.pi / 2)]
        self._turn(arm, [_rest(model, quat_to_matrix(quarter) @ now) for quarter in quarters])
        self._turn(arm, [_rest(model, np.diag([1.0, -1.0, -1.0]) @ now)])

    def _turn(self, arm: Workcell, rests: list[RestPose]) -> None:
        """Grasp and lift the object, then put it down in one of the given rest poses."""
        ways = self._ways(arm, rests)
        spot = ReleaseSpot(object_center(arm, self.object), room=None)
        grasps = [grasp.world_T_tool for grasp, _ in ways]
        plan = arm.planner.plan_grasp(
            arm.look(), arm.arm_command, grasps, self.object, rng=arm.rng(), lift_height=self.lift
        )
        if not plan:
            counts = ", ".join(f"{count} {status}" for status, count in plan.attempts.items())
            raise SkillFailure(Reason.NO_GRASP, counts or "no leaning hand can turn it over")
        rest = ways[plan.grasp_index][1]
        arm.begin("reach")
        arm.follow_all(plan.approach, plan.reach)
        arm.begin("grasp")
        if not arm.close_on(self.object):
            raise SkillFailure(Reason.MISSED_GRASP, f"the fingers closed next to {self.object}")
        arm.begin("lift")
        lifted = arm.tool_pose()
        lifted[2, 3] += self.lift
        arm.follow(arm.planner.plan_line(arm.look(), arm.arm_command, lifted))
        if not arm.is_gripping(self.object):
            raise SkillFailure(Reason.SLIPPED_AT_LIFT, f"{self.object} slipped out of the fingers")
        arm.carry()
        set_down(arm, self.object, self._releases(arm, rest, spot), rest=rest, at_once=1)

    def _ways(self, arm: Workcell, rests: list[RestPose]) -> list[tuple[Grasp, RestPose]]:
        """Return grasps, each with a rest pose in which the hand can put the object down."""
        ways: list[tuple[Grasp, RestPose]] = []
        for grasp in make_tilted_grasps(arm, self.object, least_tilt=_TILT):
            rest = next((rest for rest in rests if self._can_bring(arm, grasp, rest)), None)
            if rest is not None:
                ways.append((grasp, rest))
            if len(ways) == _MOST:
                break
        return ways

    def _can_bring(self, arm: Workcell, grasp: Grasp, rest: RestPose) -> bool:
        """Return True if the arm reaches the object's rest pose at its position and touches nothing else."""
        scene, target = arm.scene, arm.pose(self.object)
        target[2, 3] = arm.lowest_point(self.object) + rest.height + 0.001
        for yaw in _YAWS:
            target[:3, :3] = quat_to_matrix(quat_from_axis_angle((0, 0, 1), float(yaw))) @ quat_to_matrix(rest.wxyz)
            q = scene.arm.solve(target @ grasp.object_T_tool, arm.arm_command)
            if q is not None and all(self.object in pair for pair in scene.contacts(q)):
                return True
        return False

    def _releases(self, arm: Workcell, rest: RestPose, spot: ReleaseSpot) -> list[Release]:
        """Return releases with all headings, the one nearest to the home posture first.

        The task asks for no heading. The nearest one to the arm's own posture would depend on its last free motion.
        """
        first = heading(arm.pose(self.object)[:3, :3] @ quat_to_matrix(rest.wxyz).T)
        yaws = [first + float(yaw) for yaw in _YAWS]
        top = arm.start_poses[self.object][2, 3] + 0.3
        scene, home = arm.look(), np.asarray(arm.robot.arm.home)

        def effort(release: Release) -> float:
            """Return the distance of a release from the home posture [rad]; infinity without a free posture."""
            q = scene.arm.solve(release[1], home)
            if q is None or not all(self.object in pair for pair in scene.contacts(q)):
                return np.inf
            return round(float(np.linalg.norm(q - home)), 3)

        return sorted(release_poses(arm, self.object, [spot], rest=rest, yaws=yaws, top=top), key=effort)


def _rest(model: ObjectModel, surface_R_object: FloatArray) -> RestPose:
    """Return the rest pose with a given orientation (3, 3)."""
    height = -float((model.vertices @ surface_R_object[2]).min())
    return RestPose(name="turned", wxyz=quat_from_matrix(surface_R_object), height=height, tilt_margin=0.0)
