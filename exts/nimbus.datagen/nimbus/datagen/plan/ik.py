"""Inverse kinematics among obstacles: postures for a pose, and chains of postures along a straight line."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.plan.scene import PlanningScene

_FULL = 6
"""Number of joints of an arm that reaches every pose of its tool exactly."""


def solve_ik(
    scene: PlanningScene,
    world_T_tool: ArrayLike,
    *,
    seed_q: ArrayLike,
    rng: np.random.Generator,
    solutions: int = 2,
    restarts: int = 8,
    accept: Callable[[FloatArray], bool] | None = None,
) -> list[FloatArray]:
    """Return distinct postures with the tool at a pose, ordered by their distance from ``seed_q``.

    The first try starts at ``seed_q``; the following ones start increasingly far from it.

    Args:
        scene: Scene with the arm.
        world_T_tool: (4, 4) target.
        seed_q: (J,) posture to stay close to.
        rng: Random generator of the restarts.
        solutions: Number of postures at which to stop.
        restarts: Largest number of further tries.
        accept: Test of a posture; by default that it is free of collision.
    """
    target, seed = np.asarray(world_T_tool, dtype=float), np.asarray(seed_q, dtype=float)
    is_free = accept or (lambda q: not scene.in_collision(q))
    found: list[FloatArray] = []
    is_hopeless = False
    for trial in range(1 + restarts):
        # Starts move away gradually, because near postures give short motions. A start is drawn for hopeless poses too,
        # so that the later draws of the stream do not depend on this test.
        start = seed + rng.normal(scale=0.25 * trial, size=len(seed)) if trial else seed
        q = None if is_hopeless else scene.arm.solve(target, start)
        if q is None:
            continue
        if not is_free(q):
            # If the tool collides at a pose, an arm with six or more joints has no free posture there. With fewer
            # joints, the reached tool pose differs between restarts, so a later one may be free.
            is_hopeless = accept is None and len(q) >= _FULL and scene.blocks_tool(q)
            continue
        if any(np.abs(q - other).max() < 0.1 for other in found):
            continue
        found.append(q)
        if len(found) == solutions:
            break
    return sorted(found, key=lambda q: float(np.linalg.norm(q - seed)))


def trace_line(
    scene: PlanningScene,
    start_q: ArrayLike,
    world_T_goal: ArrayLike,
    *,
    step: float = 0.005,
    angle_step: float = np.radians(2.0),
    max_joint_step: float = 0.15,
) -> FloatArray | None:
    """Return postures along the tool's straight line from ``start_q`` to a pose, ignoring obstacles.

    Args:
        scene: Scene with the arm.
        start_q: (J,) first posture.
        world_T_goal: (4, 4) last pose of the tool.
        step: Distance between postures [m].
        angle_step: Rotation between postures [rad].
        max_joint_step: Largest joint displacement between two postures [rad]; a larger one counts as a failure.

    Returns:
        (P, J) joint positions, or ``None`` when the arm cannot follow.
    """
    import mink

    q, goal = np.asarray(start_q, dtype=float), np.asarray(world_T_goal, dtype=float)
    start = scene.tool_pose(q)
    turn = mink.SO3.from_matrix(start[:3, :3].T @ goal[:3, :3]).log()
    shift = goal[:3, 3] - start[:3, 3]
    count = max(1, int(np.ceil(max(np.linalg.norm(shift) / step, np.linalg.norm(turn) / angle_step))))
    path, pose = [q], start.copy()
    for fraction in np.arange(1, count + 1) / count:
        pose[:3, 3] = start[:3, 3] + fraction * shift
        pose[:3, :3] = start[:3, :3] @ mink.SO3.exp(fraction * turn).as_matrix()
        # Extrapolating the last step gives a close initial guess.
        guess = 2 * path[-1] - path[-2] if len(path) > 1 else q
        following = scene.arm.solve(pose, guess, iterations=8)
        if following is None or np.abs(following - path[-1]).max() > max_joint_step:
            return None
        path.append(following)
    return np.array(path)
