"""Pour: tilt the held container over another one, and turn it upright again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nimbus.datagen.execute.toolkit import MotionPlan, MotionStatus, PlanningScene
from nimbus.datagen.plugin import (
    ContainerReference,
    Field,
    FloatArray,
    Metres,
    ObjectReference,
    Radians,
    Reason,
    Seconds,
    Skill,
    SkillFailure,
    Workcell,
    quat_from_axis_angle,
    quat_to_matrix,
    register,
)

_YAWS = np.radians([0, 45, -45, 90, -90, 135, -135, 180])
_STEP = np.radians(4.0)
_LEVEL = 0.3
"""Smallest horizontal component of the unit axis about which the hand tilts."""
_BACK = 0.008
"""Distance from the lip to the receiver's center [m]; the contents fall slightly forward."""


@register("skill", "pour")
class Pour(Skill):
    """Move the lip of the held container over another container, tilt about the lip, wait, and tilt back.

    Needs the container in the gripper, upright and with contents. Tilts about the approach or the closing direction of
    the hand, in the first direction that can be reached. Grasp the container from the side (``pick`` with ``side``),
    because a hand from above has little space to tilt. Fails with ``no_ik`` or ``no_path`` when no direction can be
    reached, with ``no_room`` when the held object has no cavity, and with ``spilled`` when more than half of the
    contents stay in the container.
    """

    main = "object"
    hand = "keeps"
    needs = ("held(object, side=true, lift=12 cm)", "pourable(object)", "open(into)", "receives(into)")
    gives = ("poured_into(object, into)",)
    object: ObjectReference = Field(description="Container to pour from; it must be in the gripper.")
    into: ContainerReference = Field(description="Container that receives the contents.")
    tilt: Radians = Field(2.1, gt=0.5, le=2.8, description="Angle of the tilt.")
    clearance: Metres = Field(0.03, ge=0.005, le=0.3, description="Height of the lip above the receiving rim.")
    time: Seconds = Field(1.0, ge=0, le=20, description="Time in the tilted pose.")

    def run(self, arm: Workcell) -> None:
        """Move above the receiver, tilt, wait, and tilt back."""
        inside = arm.contents(self.object)
        arm.begin("carry")
        there = self._plan(arm)
        arm.begin("pour")
        # The tilt changes the load on the hand, so the container may slip: this transport ends here, and another begins
        # after the tilt.
        arm.end_transport()
        arm.follow(there)
        arm.wait(max(1, round(self.time * arm.simulation.rate)))
        arm.begin("upright")
        arm.follow(replace(there, positions=there.positions[::-1], velocities=-there.velocities[::-1]))
        arm.carry()
        if inside and len(arm.contents(self.object)) > 0.5 * len(inside):
            raise SkillFailure(Reason.SPILLED, f"most of it is still in {self.object}")

    def _plan(self, arm: Workcell) -> MotionPlan:
        """Move to the start of the first tilt that can be reached, and return the plan of the tilt."""
        failure = MotionPlan(status=MotionStatus.NO_IK, detail="no way to tilt it there")
        scene = arm.look()
        for poses in self._tilts(arm):
            q = arm.scene.arm.solve(poses[0], arm.arm_command)
            if q is None or not _can_follow(scene, q, poses):
                continue
            free = arm.planner.plan_joints(arm.look(), arm.arm_command, q, rng=arm.rng())
            if not free:
                failure = free
                continue
            tilt = arm.planner.plan_curve(arm.look(), free.end, poses[1:], speed=0.15)
            if tilt:
                arm.follow(free)
                return tilt
            failure = tilt
        raise SkillFailure.of_plan(failure)

    def _tilts(self, arm: Workcell) -> list[list[FloatArray]]:
        """Return paths of tool poses (4, 4) that start upright, sorted by the rotation of the hand, smallest first."""
        low, high = _opening(arm, self.object)
        lower, upper = arm.bounds(self.into)
        target = np.append((lower + upper)[:2] / 2, upper[2] + self.clearance)
        held, tool = arm.pose(self.object), arm.tool_pose()
        object_T_tool = np.linalg.inv(arm.tool_T_held())
        ways = []
        for yaw in _YAWS:
            turn = quat_to_matrix(quat_from_axis_angle((0, 0, 1), float(yaw)))
            for axis in (tool[:3, 2], tool[:3, 1], -tool[:3, 2], -tool[:3, 1]):
                around = turn @ axis * (1.0, 1.0, 0.0)
                if np.linalg.norm(around) < _LEVEL:
                    continue
                around /= np.linalg.norm(around)
                forward = np.cross(around, (0.0, 0.0, 1.0))
                upright = np.eye(4)
                upright[:3, :3] = turn @ held[:3, :3]
                rim = upright[:3, :3] @ ((low + high) / 2 * (1, 1, 0) + (0, 0, high[2]))
                lip = rim + forward * float((high - low)[:2].mean()) / 2
                ways.append(self._way(upright, lip, around, target - _BACK * forward, float(high[2] - low[2])))
        return [[pose @ object_T_tool for pose in way] for way in ways]

    def _way(
        self, upright: FloatArray, lip: FloatArray, axis: FloatArray, target: FloatArray, depth: float
    ) -> list[FloatArray]:
        """Return poses (4, 4) of the container from upright to tilted; the lip descends while the bottom rises."""
        poses = []
        for angle in np.linspace(0.0, self.tilt, round(self.tilt / _STEP) + 1):
            turn = quat_to_matrix(quat_from_axis_angle(axis, float(angle)))
            pose = upright.copy()
            pose[:3, :3] = turn @ upright[:3, :3]
            pose[:3, 3] = target + (0.0, 0.0, depth * max(0.0, float(np.cos(angle)))) - turn @ lip
            poses.append(pose)
        return poses


def _opening(arm: Workcell, name: str) -> tuple[FloatArray, FloatArray]:
    cavities = arm.model(name).cavities
    if not cavities:
        raise SkillFailure(Reason.NO_ROOM, f"{name} has no space inside")
    low, high = cavities.get("opening", next(iter(cavities.values())))
    return low, high


def _can_follow(scene: PlanningScene, q: FloatArray, poses: list[FloatArray]) -> bool:
    """Return True if the arm can reach every fourth pose without touching anything."""
    for pose in poses[4::4]:
        if scene.in_collision(q):
            return False
        following = scene.arm.solve(pose, q, iterations=12)
        if following is None or np.abs(following - q).max() > 0.8:
            return False
        q = following
    return not scene.in_collision(q)
