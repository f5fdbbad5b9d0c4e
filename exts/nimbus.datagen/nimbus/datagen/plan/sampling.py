"""OMPL's samplers over a planning scene: seeded, and limited by a number of collision checks."""

from __future__ import annotations

from typing import Any

import numpy as np
from ompl import base, geometric, util

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.plan.scene import PlanningScene

EDGE_STEP = 0.03
"""Distance between collision checks on an edge [rad]; with the scene's margin it misses nothing that matters."""

RANGE = 0.7
"""Longest edge of a search tree [rad]."""


def sample_path(
    scene: PlanningScene,
    start: FloatArray,
    goals: list[FloatArray],
    *,
    planner: str,
    seed: int,
    max_checks: int,
    edge_step: float = EDGE_STEP,
) -> FloatArray | None:
    """Search a path from a free posture to any of some free goals.

    Args:
        scene: Where the arm is.
        start: (J,)
        goals: Each (J,); the path ends in exactly one of them.
        planner: Name of one of OMPL's geometric planners.
        seed: Decides the path.
        max_checks: Give up after so many collision checks.
        edge_step: Distance between checks on an edge [rad].

    Returns:
        (P, J) corners of a path, or ``None``.
    """
    # OMPL waits for ever for a goal that is valid.
    if any(scene.in_collision(q) or not scene.within_limits(q) for q in (start, *goals)):
        raise ValueError("the start and all goals of a search must be free and within the joint limits")
    util.setLogLevel(util.LOG_NONE)
    # Planner objects take their seeds from this one when they are built.
    util.RNG.setSeed(seed)
    joints = range(len(start))
    space = base.RealVectorStateSpace(len(start))
    bounds = base.RealVectorBounds(len(start))
    for joint, (low, high) in enumerate(scene.limits):
        # Limits are kept to within a rounding error.
        bounds.setLow(joint, float(low) - 1e-5)
        bounds.setHigh(joint, float(high) + 1e-5)
    space.setBounds(bounds)
    information = base.SpaceInformation(space)

    def is_free(state: Any) -> bool:
        return not scene.in_collision([state[j] for j in joints])

    information.setStateValidityChecker(is_free)
    information.setStateValidityCheckingResolution(edge_step / space.getMaximumExtent())
    information.setup()

    problem = base.ProblemDefinition(information)
    problem.addStartState(_state(space, start))
    targets = base.GoalStates(information)
    for goal in goals:
        targets.addState(_state(space, goal))
    problem.setGoal(targets)
    search = getattr(geometric, planner)(information)
    search.setProblemDefinition(problem)
    search.setRange(RANGE)
    search.setup()
    last = scene.check_count + max_checks
    search.solve(base.PlannerTerminationCondition(lambda: scene.check_count >= last))
    if not problem.hasExactSolution():
        return None
    path: Any = problem.getSolutionPath()
    return np.array([[state[j] for j in joints] for state in path.getStates()])


def _state(space: base.RealVectorStateSpace, q: FloatArray) -> Any:
    state: Any = space.allocState()
    for joint, value in enumerate(q):
        state[joint] = float(value)
    return state
