"""Pinching a flat flexible object: the hand comes down over a part of it and carries that part along a path."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import TYPE_CHECKING

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.trajectory import Reason
from nimbus.datagen.execute.motions.pushing import HALF_TURNS, set_fingers
from nimbus.datagen.plan.motion import MotionPlan, MotionStatus
from nimbus.datagen.tasks.statements import SkillFailure

if TYPE_CHECKING:
    from nimbus.datagen.tasks.workcell_interface import Workcell

CarryPath = tuple[list[FloatArray], list[FloatArray]]
"""Path of the hand, tool poses (4, 4), in two parts; the second one continues the first."""

_TIPS = 0.0015
"""Height of the finger tips above the surface while they close [m]; higher ones slide over a cloth."""
_DESCENT = 0.15
"""Speed of the hand on its way down [m/s]."""


def pinch_height(arm: Workcell, surface: float) -> float:
    """Return the height of the tool at which the fingers close on something flat on a surface [m]."""
    return surface + _TIPS + arm.robot.gripper.pad_height / 2


def reach_carry_path(
    arm: Workcell, paths: Iterable[CarryPath], *, opening: float, over: float, speed: float, carried: str
) -> CarryPath:
    """Open the fingers and lower them to the start of the first path that the arm can follow; return its rest.

    The hand may also be turned by half a turn about its approach. The phase is ``reach``.

    Args:
        arm: The arm, with an empty hand that points down.
        paths: Paths in the order of preference. Each begins at the grasp.
        opening: Distance of the fingers [m].
        over: Height of the tool before the descent [m].
        speed: Speed of the tool along a path [m/s].
        carried: Part of the object that the hand carries, for the message.

    Raises:
        SkillFailure: The arm can follow none of the paths.
    """
    arm.begin("reach")
    set_fingers(arm, opening)
    plan = MotionPlan(status=MotionStatus.NO_IK)
    for first, second in paths:
        for turn in HALF_TURNS:
            start, *rest = [pose @ turn for pose in itertools.chain(first, second)]
            above = start.copy()
            above[2, 3] = over
            plan = arm.planner.plan_pose(arm.look(), arm.arm_command, [above], rng=arm.rng())
            if not plan:
                continue
            lower = arm.planner.plan_line(arm.look(), plan.end, start, speed=_DESCENT)
            if not lower:
                plan = lower
                continue
            whole = arm.planner.plan_curve(arm.look(), lower.end, rest, speed=speed)
            if whole:
                arm.follow_all(plan, lower)
                return rest[: len(first) - 1], rest[len(first) - 1 :]
            plan = whole
    raise SkillFailure(Reason.NO_GRASP, f"no {carried} can be carried: {plan.detail or plan.status}")
