"""Handover: one arm gives an object to another."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nimbus.datagen.execute.toolkit import MotionPlan, make_handover_grasps, retreat
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
    quat_to_matrix,
    register,
)

_LEANS = np.radians([40, 65, 20, 0])
"""Tilts of the giving hand, which leave space for the receiving hand [rad]."""
_AHEAD = 0.10
"""Distances by which the meeting point is ahead of and below the midpoint of the tools at home [m]."""
_BATCH = 6
"""Number of grasps in one planning query."""
_ROOM = 0.012
"""Travel of each of the giver's fingers at the release [m]."""


@register("skill", "handover")
class Handover(Skill):
    """Give the held object from one arm to another in the air between them.

    Needs a robot with several arms, the object in the gripper of ``giver`` and an empty gripper of ``receiver``. The
    giver moves the object to the middle, the receiver grasps a free part of the object, and the giver releases it and
    retreats. Fails with ``no_ik`` or ``no_path`` when the arms cannot meet, with ``no_grasp`` when no free part of the
    object can be reached, or with ``missed_grasp``, ``slipped_in_transit`` or ``gripper_not_clear``.
    """

    main = "object"
    needs = ("two_arms", "held_by(object, giver)")
    gives = ("held_by(object, receiver)",)
    object: ObjectReference = Field(description="Object to hand over.")
    giver: str = Field("left", description="Arm that holds the object.")
    receiver: str = Field("right", description="Arm that takes the object.")
    approach: Metres = Field(0.08, gt=0, le=0.3, description="Length of the receiver's straight approach.")

    def run(self, arm: Workcell) -> None:
        """Meet, grasp, release and retreat."""
        giver, receiver = arm.arm(self.giver), arm.arm(self.receiver)
        if giver.held != self.object:
            raise SkillFailure(Reason.MISSED_GRASP, f"{self.object} is not in the hand of the arm '{self.giver}'")
        if receiver.held:
            raise SkillFailure(Reason.GRIPPER_NOT_CLEAR, f"{receiver.held} is still in the receiver's gripper")
        self._take(arm, giver, receiver)
        self._let_go(arm, giver)
        receiver.carry()

    def _take(self, arm: Workcell, giver: Workcell, receiver: Workcell) -> None:
        failure = SkillFailure(Reason.NO_GRASP, "no free part of it can be reached")
        for goals in _meetings(giver, receiver):
            plan = giver.planner.plan_pose(giver.look(), giver.arm_command, goals, rng=giver.rng())
            if not plan:
                failure = SkillFailure.of_plan(plan)
                continue
            arm.begin("meet")
            giver.follow(plan)
            found = self._reach(giver, receiver)
            if found is None:
                failure = SkillFailure(Reason.NO_GRASP, "no free part of it can be reached")
                continue
            arm.begin("reach")
            receiver.follow_all(*found)
            arm.begin("grasp")
            giver.end_transport()
            if not receiver.close_on(self.object):
                raise SkillFailure(Reason.MISSED_GRASP, f"the receiver's fingers closed beside {self.object}")
            return
        raise failure

    def _reach(self, giver: Workcell, receiver: Workcell) -> tuple[MotionPlan, MotionPlan] | None:
        """Plan a free motion of the receiver to an approach pose, and a straight motion to the grasp."""
        poses = make_handover_grasps(giver, receiver, self.object)
        for first in range(0, len(poses), _BATCH):
            some = poses[first : first + _BATCH]
            before = []
            for pose in some:
                back = pose.copy()
                back[:3, 3] -= self.approach * pose[:3, 2]
                before.append(back)
            scene = receiver.look()
            free = receiver.planner.plan_pose(scene, receiver.arm_command, before, rng=receiver.rng())
            if not free:
                continue
            straight = receiver.planner.plan_line(scene, free.end, some[free.goal_index])
            if straight:
                return free, straight
        return None

    def _let_go(self, arm: Workcell, giver: Workcell) -> None:
        """Open slightly and retreat along the fingers."""
        arm.begin("release")
        giver.open(room=_ROOM)
        arm.begin("retreat")
        ways = [-length * giver.tool_pose()[:3, 2] for length in (0.10, 0.07, 0.05)]
        retreat(giver, self.object, ways=ways, among_released=False, speed=0.25)


def _meetings(giver: Workcell, receiver: Workcell) -> Iterator[list[FloatArray]]:
    """Yield groups of tool poses (4, 4) of the giver between the arms, best group first; a group shares one tilt."""
    homes = [arm.scene.tool_pose(arm.robot.arm.home)[:3, 3] for arm in (giver, receiver)]
    bases = [arm.pose(arm.base_link())[:3, 3] for arm in (giver, receiver)]
    middle = np.mean(homes, axis=0)
    ahead = (middle - np.mean(bases, axis=0)) * (1.0, 1.0, 0.0)
    ahead /= max(float(np.linalg.norm(ahead)), 1e-9)
    across = (homes[1] - homes[0]) * (1.0, 1.0, 0.0)
    across /= max(float(np.linalg.norm(across)), 1e-9)
    point = middle + _AHEAD * ahead - (0.0, 0.0, _AHEAD)
    down = np.array([0.0, 0.0, -1.0])
    for lean in _LEANS:
        goals = []
        for shift in (0.0, 0.08, -0.08):
            for turn in np.radians([0, 180, 30, -30, 150, -150]):
                z = np.cos(lean) * down + np.sin(lean) * across
                x = np.cos(lean) * across - np.sin(lean) * down
                pose = np.eye(4)
                pose[:3, :3] = np.stack([x, np.cross(z, x), z], axis=1) @ quat_to_matrix(
                    quat_from_axis_angle((0, 0, 1), turn)
                )
                pose[:3, 3] = point + shift * ahead
                goals.append(pose)
        yield goals
