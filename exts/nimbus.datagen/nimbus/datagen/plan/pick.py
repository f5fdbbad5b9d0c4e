"""Planning of a pick with the first of several ranked grasps that can be approached, reached and lifted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.plan import line
from nimbus.datagen.plan.ik import solve_ik, trace_line
from nimbus.datagen.plan.motion import GraspPlan, MotionPlan, MotionStatus
from nimbus.datagen.plan.scene import PlanningScene

if TYPE_CHECKING:
    from nimbus.datagen.plan.timed import TimedPlanner

FINGER_CLEARANCE = 5e-4
"""Clearance of the open gripper at the grasp [m]."""

ABOUT_AS_GOOD = 6
"""Number of consecutive grasps in the ranking that count as equally good."""

_PHASES = ("grasp", "reach", "lift", "approach")


def plan_grasp(
    planner: TimedPlanner,
    scene: PlanningScene,
    start: FloatArray,
    grasps: Sequence[ArrayLike],
    body: str,
    *,
    rng: np.random.Generator,
    approach_distance: float,
    lift_height: float,
    speed: float,
    in_order: bool = False,
) -> GraspPlan:
    """Plan approach, reach and lift for the first feasible one of several ranked grasps of a body.

    Args:
        planner: Plans the single motions.
        scene: Bodies around the arm, and the arm itself.
        start: (J,) first posture [rad or m].
        grasps: (4, 4) ``world_T_tool`` each, best first [m].
        body: Name of the body to pick.
        rng: Stream of the planner's random draws.
        approach_distance: Length of the reach along the tool's approach [m].
        lift_height: Height of the lift [m].
        speed: Highest speed of the tool [m/s].
        in_order: True to try the grasps exactly in their order. By default, the grasp with the nearest posture comes
            first in each group of :data:`ABOUT_AS_GOOD`.
    """
    attempts: Counter[str] = Counter()
    furthest = (-1, MotionStatus.NO_IK, "")
    for candidate in _candidates(scene, start, grasps, rng, in_order=in_order):
        plans: dict[str, MotionPlan] = {}
        for phase, plan in _phases(planner, scene, start, candidate, body, rng, approach_distance, lift_height, speed):
            plans[phase] = plan
            if not plan:
                attempts[f"{phase}: {plan.status}"] += 1
                furthest = max(furthest, (_PHASES.index(phase), plan.status, plan.detail), key=lambda item: item[0])
                break
        else:
            return GraspPlan(
                status=MotionStatus.SUCCESS,
                grasp_index=candidate.index,
                world_T_tool=candidate.world_T_tool,
                attempts=dict(attempts),
                approach=plans["approach"],
                reach=plans["reach"],
                lift=plans["lift"],
            )
    return GraspPlan(status=furthest[1], detail=furthest[2], attempts=dict(attempts))


@dataclass(frozen=True, kw_only=True)
class _Candidate:
    index: int
    world_T_tool: FloatArray
    q: FloatArray | None
    """Posture at the grasp, if there is one."""
    detail: str


def _candidates(
    scene: PlanningScene,
    start: FloatArray,
    grasps: Sequence[ArrayLike],
    rng: np.random.Generator,
    *,
    in_order: bool,
) -> Iterator[_Candidate]:
    """Yield the grasps with their postures; within a group of equally good grasps, the nearest posture comes first.

    Half a turn about the approach does not change the grasp of a parallel gripper, so both orientations are tried.
    """
    if in_order:
        for index, grasp in enumerate(grasps):
            yield from _both_ways(scene, start, index, np.asarray(grasp, dtype=float), rng)
        return

    def effort(candidate: _Candidate) -> float:
        return np.inf if candidate.q is None else float(np.linalg.norm(candidate.q - start))

    for first in range(0, len(grasps), ABOUT_AS_GOOD):
        group: list[_Candidate] = []
        for index in range(first, min(first + ABOUT_AS_GOOD, len(grasps))):
            group += _both_ways(scene, start, index, np.asarray(grasps[index], dtype=float), rng)
        yield from sorted(group, key=effort)


def _both_ways(
    scene: PlanningScene, start: FloatArray, index: int, pose: FloatArray, rng: np.random.Generator
) -> Iterator[_Candidate]:
    """Yield a grasp, then the same one after half a turn, unless the gripper itself touches something in the first."""
    for world_T_tool in (pose, pose @ np.diag([-1.0, -1.0, 1.0, 1.0])):
        q, detail = _grasp_posture(scene, world_T_tool, start, rng)
        yield _Candidate(index=index, world_T_tool=world_T_tool, q=q, detail=detail)
        if q is None and detail:
            break


def _phases(
    planner: TimedPlanner,
    scene: PlanningScene,
    start: FloatArray,
    grasp: _Candidate,
    body: str,
    rng: np.random.Generator,
    approach_distance: float,
    lift_height: float,
    speed: float,
) -> Iterator[tuple[str, MotionPlan]]:
    """Yield the plan of each phase of one grasp; the phases that are cheapest to plan come first."""
    q, world_T_tool = grasp.q, grasp.world_T_tool
    if q is None:
        status = MotionStatus.GOAL_IN_COLLISION if grasp.detail else MotionStatus.NO_IK
        yield "grasp", MotionPlan(status=status, detail=grasp.detail)
        return
    backed_off = world_T_tool.copy()
    backed_off[:3, 3] -= approach_distance * world_T_tool[:3, 2]
    # The line is traced from the grasp outward, so that the posture at the grasp is exactly the one that was checked.
    outwards = trace_line(scene, q, backed_off)
    if outwards is None:
        yield "reach", MotionPlan(status=MotionStatus.LINE_BLOCKED, detail="out of reach")
        return
    yield "reach", line.time_line(planner, scene, outwards[::-1], speed=speed)

    lifted = world_T_tool.copy()
    lifted[2, 3] += lift_height
    tool_T_object = np.linalg.inv(world_T_tool) @ scene.body_pose(body)
    scene.hold(body, tool_T_object)
    try:
        lift = planner.plan_line(scene, q, lifted, speed=speed)
    finally:
        scene.hold(None)
    yield "lift", lift
    yield "approach", planner.plan_joints(scene, start, outwards[-1], rng=rng)


def _grasp_posture(
    scene: PlanningScene, world_T_tool: FloatArray, start: FloatArray, rng: np.random.Generator
) -> tuple[FloatArray | None, str]:
    """Return a posture with the open gripper around the object and clear of everything, or the contact in the way."""

    def is_clear(q: FloatArray) -> bool:
        """Return True if arm and gripper keep their clearance in a posture (J,) [rad or m]."""
        return min(scene.contacts(q).values(), default=np.inf) > FINGER_CLEARANCE

    q = scene.arm.solve(world_T_tool, start)
    if q is not None:
        if is_clear(q):
            return q, ""
        pair = scene.first_contact(q) or ()
        if scene.gripper_bodies.intersection(pair):
            # The gripper itself collides, so no other posture of the arm helps.
            return None, " touches ".join(pair)
    found = solve_ik(scene, world_T_tool, seed_q=start, rng=rng, solutions=1, restarts=4, accept=is_clear)
    return (found[0] if found else None), ""
