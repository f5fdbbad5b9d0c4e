"""Motions of the tool along a curve, for example with a hand on a door, a drawer or a knob."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.plan.line import time_line
from nimbus.datagen.plan.motion import MotionPlan, MotionStatus
from nimbus.datagen.plan.scene import PlanningScene

if TYPE_CHECKING:
    from nimbus.datagen.plan.timed import TimedPlanner

_MOST_STEP = 0.15
"""Joint displacement between two postures above which they count as a jump [rad]."""


def plan_curve(
    planner: TimedPlanner, scene: PlanningScene, start: FloatArray, poses: Sequence[ArrayLike], *, speed: float
) -> MotionPlan:
    """Plan a motion of the tool through poses that follow each other closely.

    Args:
        planner: Checks and times the motion.
        scene: Bodies around the arm, and the arm itself.
        start: (J,) first posture [rad or m].
        poses: (4, 4) ``world_T_tool`` each, in their order [m].
        speed: Highest speed of the tool [m/s].
    """
    begin = time.process_time()
    path = trace_curve(scene, start, poses)
    ik_time = time.process_time() - begin
    if len(path) <= len(poses):
        return MotionPlan(status=MotionStatus.LINE_BLOCKED, detail="out of reach", statistics={"ik_time": ik_time})
    points = np.array([scene.tool_pose(q)[:3, 3] for q in path])
    length = float(np.linalg.norm(np.diff(points, axis=0), axis=1).sum())
    return time_line(planner, scene, path, speed=speed, ik_time=ik_time, length=length)


def trace_curve(scene: PlanningScene, start_q: ArrayLike, poses: Sequence[ArrayLike]) -> FloatArray:
    """Return postures with the tool at one pose after another, ignoring obstacles.

    Args:
        scene: Scene with the arm.
        start_q: (J,) first posture.
        poses: (4, 4) ``world_T_tool``, at most millimeters and degrees apart, so that each posture leads to the next.

    Returns:
        (P + 1, J) joint positions; fewer when the arm cannot follow to the end.
    """
    path = [np.asarray(start_q, dtype=float)]
    for pose in poses:
        # Extrapolating the last step gives a close initial guess.
        guess = 2 * path[-1] - path[-2] if len(path) > 1 else path[0]
        tries = ((guess, 8), (path[-1], 25))
        solved = (scene.arm.solve(np.asarray(pose, dtype=float), seed, iterations=count) for seed, count in tries)
        near = (q for q in solved if q is not None and np.abs(q - path[-1]).max() <= _MOST_STEP)
        if (following := next(near, None)) is None:
            break
        path.append(following)
    return np.array(path)
