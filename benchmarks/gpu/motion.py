"""Motion planning on the same problems: cuRobo V2 on the GPU beside OMPL on one core.

The problems are those of ``benchmarks/motion_plan.py``. Each plan is checked every 5 mrad in a scene without margins;
a plan that collides there is a problem of the part.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.gpu.result import MissingError, PartResult, Row
from nimbus.datagen.render.stacked import find_device

NEEDED = ("mink", "mujoco", "ompl", "ruckig", "toppra", "pydantic")
"""Packages of the default planner."""
_PROBLEMS, _CPU_PROBLEMS = 50, 2
_SEED = 1
_STEP = 0.005
"""Distance between the checked postures [rad]."""


def measure(device: str) -> PartResult:
    """Plan the problems with every planner that is there.

    Args:
        device: Device of cuRobo; on a ``cpu`` OMPL plans a few problems alone.

    Raises:
        InputError: The device is not there.
        MissingError: A package of the default planner is missing.
    """
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise MissingError(f"no package {', '.join(missing)}")
    find_device(device)
    try:
        from tests.support import panda_table
    except ModuleNotFoundError:
        raise MissingError("the problems are in tests/support, which is not here") from None
    from nimbus.datagen.plan.ompl import OmplPlanner

    limits: dict[str, Any] = {"velocity_limits": panda_table.VELOCITY, "acceleration_limits": panda_table.ACCELERATION}
    count = _CPU_PROBLEMS if device == "cpu" else _PROBLEMS
    row, problems = _plan("ompl, one core", OmplPlanner(**limits), count)
    rows = [row]
    if device == "cpu":
        return PartResult(rows=tuple(rows), problems=tuple(problems), skipped="cuRobo plans on a GPU only")
    if importlib.util.find_spec("curobo") is None:
        return PartResult(rows=tuple(rows), problems=tuple(problems), skipped="no package curobo")
    from nimbus.datagen.plan.curobo.planner import CuroboPlanner

    row, more = _plan("curobo v2", CuroboPlanner(**limits), count)
    return PartResult(rows=(*rows, row), problems=(*problems, *more))


def _plan(name: str, planner: Any, count: int) -> tuple[Row, list[str]]:
    """Plan problems one by one; the first is planned before, so that compiling is not measured."""
    from benchmarks.motion_plan import draw_problem
    from nimbus.datagen.plan.path import path_is_free
    from nimbus.datagen.random_streams import generator
    from tests.support import panda_table

    model = panda_table.table_model(cubby=False, half=0.18, roof=0.46)
    scene, exact = panda_table.make_scene(model), panda_table.make_scene(model, margin=0.0)

    def plan(index: int) -> tuple[Any, float]:
        problem = draw_problem(scene, "tabletop", index, seed=_SEED)
        for view in (scene, exact):
            view.hold(problem.held, problem.tool_T_object)
        begin = time.perf_counter()
        found = planner.plan_pose(scene, problem.start_q, problem.goals, rng=generator(_SEED, "gpu", "plan", index))
        return found, time.perf_counter() - begin

    plan(0)
    seconds, durations, solved, problems = [], [], 0, []
    is_free: Callable[[np.ndarray], bool] = lambda q: not exact.in_collision(q)  # noqa: E731
    for index in range(count):
        found, spent = plan(index)
        seconds.append(spent)
        if not found:
            continue
        solved += 1
        durations.append(found.duration)
        if not path_is_free(found.positions, is_free, step=_STEP):
            problems.append(f"{name}: the motion of problem {index} collides")
    if not solved:
        problems.append(f"{name}: no problem is solved")
    row: Row = {"planner": name, "problems": count, "solved": solved, "median_s": float(np.median(seconds))}
    return row | {"longest_s": max(seconds), "motion_s": float(np.median(durations)) if durations else 0.0}, problems
