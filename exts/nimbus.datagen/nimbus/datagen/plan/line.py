"""Straight motions of the tool near objects: approach, lift, lower, retreat."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.plan.ik import trace_line
from nimbus.datagen.plan.motion import MotionPlan, MotionStatus
from nimbus.datagen.plan.path import IsFree, path_length, thin_path
from nimbus.datagen.plan.scene import BodyPair, PlanningScene
from nimbus.datagen.plan.timing import join_motions

if TYPE_CHECKING:
    from nimbus.datagen.plan.timed import TimedPlanner

DEEPER = 5e-4
"""Distance by which two bodies may come closer along a line than they are at its ends [m]."""
JOIN_TOLERANCE = 0.01
"""Largest deviation of a joined motion from its lines [rad]."""
REST_DEPTH = 2e-3
"""Deepest contact along a line [m]; bodies that rest on each other at its start penetrate slightly."""


def plan_line(
    planner: TimedPlanner, scene: PlanningScene, start: FloatArray, world_T_goal: ArrayLike, *, speed: float
) -> MotionPlan:
    """Plan a straight motion; see :class:`~nimbus.datagen.plan.motion.MotionPlanner`."""
    begin = time.process_time()
    path = trace_line(scene, start, world_T_goal)
    ik_time = time.process_time() - begin
    if path is None:
        return MotionPlan(status=MotionStatus.LINE_BLOCKED, detail="out of reach", statistics={"ik_time": ik_time})
    return time_line(planner, scene, path, speed=speed, ik_time=ik_time)


def time_line(
    planner: TimedPlanner,
    scene: PlanningScene,
    path: FloatArray,
    *,
    speed: float,
    ik_time: float = 0.0,
    length: float | None = None,
) -> MotionPlan:
    """Check and time a traced line of postures (P, J); ``length`` is the length of a curve [m]."""
    checks, begin = scene.check_count, time.process_time()
    nearest = nearest_along(scene, path)
    # Distances are compared with those at the ends, because bodies may be in contact there, for example before a lift.
    is_free = free_along(scene, nearest)
    blocked = next((q for q in path if not is_free(q)), None)
    if blocked is not None:
        too_near = pairs_too_near(scene, blocked, nearest)
        detail = " touches ".join(min(too_near, key=too_near.__getitem__))
        return MotionPlan(status=MotionStatus.LINE_BLOCKED, detail=detail)
    spent = {"ik_time": ik_time, "plan_time": time.process_time() - begin}
    distance = length
    if distance is None:
        distance = float(np.linalg.norm(scene.tool_pose(path[-1])[:3, 3] - scene.tool_pose(path[0])[:3, 3]))
    plan = planner.time(thin_path(path), is_free, min_duration=distance / speed, spent=spent)
    if plan:
        plan.statistics["clearance"] = scene.clearance_along(plan.positions)
    plan.statistics["checks"] = scene.check_count - checks
    return plan


def join_plans(planner: TimedPlanner, scene: PlanningScene, plans: Sequence[MotionPlan]) -> MotionPlan:
    """Join plans; see :class:`~nimbus.datagen.plan.motion.MotionPlanner`."""
    # Long edges leave room to round the corners where plans meet.
    coarse = [thin_path(plan.waypoints, tolerance=JOIN_TOLERANCE) for plan in plans]
    path = np.vstack([coarse[0], *(waypoints[1:] for waypoints in coarse[1:])])
    is_free = free_along(scene, nearest_along(scene, path))
    spent = {name: sum(plan.statistics.get(name, 0.0) for plan in plans) for name in ("ik_time", "plan_time")}
    flowing = planner.time(path, is_free, spent=spent, goal_index=plans[-1].goal_index)
    halting = join_motions(plans)
    # The joined motion ignores the speed limits of its parts, but can still be slower, because its corners are sharp.
    if flowing and flowing.duration < halting.time[-1]:
        flowing.statistics["clearance"] = scene.clearance_along(flowing.positions)
        return flowing
    timing_time = sum(plan.statistics.get("timing_time", 0.0) for plan in plans)
    clearance = min((plan.statistics["clearance"] for plan in plans if "clearance" in plan.statistics), default=np.nan)
    return replace(
        plans[-1],
        time=halting.time,
        positions=halting.positions,
        velocities=halting.velocities,
        waypoints=path,
        statistics=spent | {"timing_time": timing_time, "clearance": clearance, "path_length": path_length(path)},
    )


def nearest_along(scene: PlanningScene, path: FloatArray) -> dict[BodyPair, float]:
    """Return the smallest distance allowed along a line for pairs of bodies that are close at one of its ends.

    Contacts at the start may deepen slightly; no other pair may touch, not even at the end.

    Returns:
        Signed distances [m].
    """
    nearest: dict[BodyPair, float] = {}
    for pair, distance in scene.contacts(path[-1]).items():
        nearest[pair] = max(distance - DEEPER, 0.0)
    for pair, distance in scene.contacts(path[0]).items():
        least = max(distance - DEEPER, 0.0 if distance >= 0.0 else -REST_DEPTH)
        nearest[pair] = min(least, nearest.get(pair, np.inf))
    return nearest


def pairs_too_near(scene: PlanningScene, q: FloatArray, nearest: dict[BodyPair, float]) -> dict[BodyPair, float]:
    """Return pairs of bodies nearer than allowed, with their signed distance [m]."""
    return {pair: distance for pair, distance in scene.contacts(q).items() if distance < nearest.get(pair, np.inf)}


def free_along(scene: PlanningScene, nearest: dict[BodyPair, float]) -> IsFree:
    """Return a predicate that is true for postures in which no pair of bodies is nearer than allowed."""
    return lambda q: not pairs_too_near(scene, q, nearest)
