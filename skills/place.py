"""Place: put the held object into something open, and let go."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from nimbus.datagen.execute.failure import SkillFailure
from nimbus.datagen.execute.workcell import Workcell
from nimbus.datagen.plan.motion import MotionPlan, MotionStatus
from nimbus.datagen.quantities import Metres
from nimbus.datagen.registry import register
from nimbus.datagen.rotations import rotation_about, to_matrix
from nimbus.datagen.skill import FixtureReference, ObjectReference, Skill
from nimbus.datagen.trajectory import Reason

Float = NDArray[np.float64]

_WALL = 0.012
"""[m] Inside the bounds of an open fixture, its walls and a little room."""
_YAWS = np.radians([0, 90, -90, 45, -45, 180, 135, -135, 20, -20, 70, -70])
_TURNS = 12
"""Turns of the object that are tried: those that fit best."""
_BATCH = 4
_FINGER_ROOM = 0.01
"""[m] The fingers open so far inside the fixture, where its walls and other things are near."""


@register("skill", "place")
class Place(Skill):
    """Put the held object into an open fixture, such as a bin, and let go.

    Needs the object in the gripper. Chooses a turn of the object that fits, away from what is inside already, lowers
    it and opens the fingers. Fails with ``no_ik`` or ``no_path`` when no release pose can be reached, and with
    ``slipped_in_transit``.
    """

    main = "object"
    object: ObjectReference = Field(description="What to place; it must be in the gripper.")
    into: FixtureReference = Field(description="The open fixture that receives it.")
    drop: Metres = Field(0.02, ge=0, le=0.3, description="Height above the floor of the fixture at which to let go.")

    def run(self, arm: Workcell) -> None:
        """Carry, lower, open, retreat."""
        if arm.held != self.object:
            raise SkillFailure(Reason.MISSED_GRASP, f"{self.object} is not in the gripper")
        carry, lower = self._plan(arm)
        arm.begin("carry")
        arm.follow_all(carry, lower)
        arm.begin("release")
        arm.open(room=_FINGER_ROOM, steps=2)
        arm.begin("retreat")
        plan, touched = self._retreat(arm)
        arm.follow(plan, opening=arm.robot.gripper.open, touching=touched)

    def _plan(self, arm: Workcell) -> tuple[MotionPlan, MotionPlan]:
        """A free motion to above a release pose and a straight one down to it."""
        poses = list(self._release_poses(arm))
        failure = MotionPlan(status=MotionStatus.NO_IK, detail=f"nothing fits into {self.into}")
        for batch in range(0, len(poses), _BATCH):
            some = poses[batch : batch + _BATCH]
            carry = arm.planner.plan_pose(arm.look(), arm.arm_command, [above for above, _ in some], rng=arm.rng())
            if not carry:
                failure = carry
                continue
            lower = arm.planner.plan_line(arm.look(), carry.end, some[carry.goal_index][1], speed=0.35)
            if lower:
                return carry, lower
            failure = lower
        raise SkillFailure.of_plan(failure)

    def _release_poses(self, arm: Workcell) -> Iterator[tuple[Float, Float]]:
        """Pairs of ``world_T_tool`` above the fixture and at the release, most promising first."""
        world_T_fixture, tool_T_object = arm.pose(self.into), arm.tool_T_held()
        low, high = (np.array(corner) for corner in arm.fixture(self.into).bounds)
        low, high = low + (_WALL, _WALL, _WALL), high - (_WALL, _WALL, 0.0)
        vertices, turn_now = arm.model(self.object).vertices, arm.tool_pose()[:3, :3]
        candidates = []
        for yaw in _YAWS:
            turn = to_matrix(rotation_about((0, 0, 1), float(yaw))) @ turn_now
            object_turn = world_T_fixture[:3, :3].T @ turn @ tool_T_object[:3, :3]
            points = vertices @ object_turn.T
            lower, upper = points.min(axis=0), points.max(axis=0)
            overflow = np.maximum((upper - lower)[:2] - (high - low)[:2], 0.0).sum()
            candidates.append((round(float(overflow), 3), abs(float(yaw)), float(yaw), lower, upper, object_turn))
        best = sorted(candidates, key=lambda entry: entry[:3])[:_TURNS]
        for raised, spot in itertools.product((0.0, 0.03, 0.07, 0.12), self._spots(arm, world_T_fixture, low, high)):
            for _, _, _, lower, upper, object_turn in best:
                room = np.maximum((high - low)[:2] - (upper - lower)[:2], 0.0) / 2
                middle = (low + high)[:2] / 2 + np.clip(spot, -room, room)
                release = np.eye(4)
                release[:3, :3] = object_turn
                release[:2, 3] = middle - (lower + upper)[:2] / 2
                release[2, 3] = low[2] + self.drop + raised - lower[2]
                above = release.copy()
                above[2, 3] = max(high[2] + 0.02 - lower[2], release[2, 3])
                object_T_tool = np.linalg.inv(tool_T_object)
                yield world_T_fixture @ above @ object_T_tool, world_T_fixture @ release @ object_T_tool

    def _spots(self, arm: Workcell, world_T_fixture: Float, low: Float, high: Float) -> list[Float]:
        """Shifts from the middle (2,) [m], furthest first from what lies in the fixture already."""
        size = (high - low)[:2]
        shifts = [np.zeros(2), *(0.25 * size * np.array(sign) for sign in ((1, 0), (-1, 0), (0, 1), (0, -1)))]
        fixture_T_world = np.linalg.inv(world_T_fixture)
        places = [(fixture_T_world @ arm.pose(name))[:2, 3] - (low + high)[:2] / 2 for name in arm.released]
        inside = [place for place in places if np.all(np.abs(place) < size / 2)]
        if not inside:
            return shifts[:1]
        return sorted(shifts, key=lambda shift: -min(float(np.linalg.norm(shift - place)) for place in inside))[:3]

    def _retreat(self, arm: Workcell) -> tuple[MotionPlan, set[str]]:
        """Straight up to above the rim, or as far as the arm reaches, or back along the fingers.

        What was just let go may be touched, and when nothing else helps, what lies in the fixture already.
        """
        pose, scene = arm.tool_pose(), arm.look()
        rim = arm.pose(self.into)[2, 3] + arm.fixture(self.into).bounds[1][2]
        height = max(0.05, rim + 0.06 - pose[2, 3])
        ways = [(0.0, 0.0, height * share) for share in (1.0, 0.7, 0.4)] + [-0.08 * pose[:3, 2]]
        plan = MotionPlan(status=MotionStatus.NO_PATH)
        for touched, way in itertools.product(({self.object}, arm.released), ways):
            goal = pose.copy()
            goal[:3, 3] += way
            with scene.allow(*touched):
                plan = arm.planner.plan_line(scene, arm.arm_command, goal, speed=0.35)
            if plan:
                return plan, touched
        return plan, set()
