"""Motion planning on the same problems: cuRobo V2 on the GPU, and OMPL on one core.

The problems are those of ``benchmarks/motion_plan.py``. Each plan is checked every 5 mrad in a scene without margins; a
plan that collides there is reported as a problem. cuRobo plans the problems one by one and eight at once, each problem
in the same row, because cuRobo draws its seeds row by row; the number of motions that are equal in both, bit for bit,
is reported. On a CPU, the same stages run with the tests' planner that has the interface for batches. Every stage has a
limit of wall time and reports its progress on stderr. If it fails, the results of earlier stages are still reported.
"""

from __future__ import annotations

import importlib.util
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from benchmarks.gpu.result import MissingError, PartResult, Row
from nimbus.datagen.render.stacked import find_device

if TYPE_CHECKING:
    from nimbus.datagen.plan.batch import BatchPlanner

NEEDED = ("mink", "mujoco", "ompl", "ruckig", "toppra", "pydantic")
"""Packages of the default planner."""
Measured: TypeAlias = tuple[Row, list[str]]
"""Figures of a stage, and a line for each check that failed."""

_PROBLEMS, _CPU_PROBLEMS = 50, 2
_SEED = 1
_DEEPEST = 0.0005
"""Largest penetration between postures that planners check, which are 20 mrad apart [m]."""
_STEP = 0.005
"""Distance between the checked postures [rad]."""
_ENOUGH = {"ompl": 60.0, "curobo": 45.0}
"""Wall time after which a stage begins no further problem [s]."""
_FIRST, _LAST = 150.0, 90.0
"""Wall time after which cuRobo's process is ended [s]: for the first plan, which includes compilation, and for a later
stage."""


def measure(device: str) -> PartResult:
    """Plan the problems with every installed planner.

    Args:
        device: Device of cuRobo; on a ``cpu``, only OMPL plans a few problems.

    Raises:
        InputError: The device does not exist.
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
    is_small = device == "cpu"
    stages = _Stages()
    bench = _Bench(stages.say, _CPU_PROBLEMS if is_small else _PROBLEMS)
    stages.run("ompl, one core", lambda name: bench.singly(name, OmplPlanner(**limits), _ENOUGH["ompl"]))
    if is_small:
        from tests.support.batch_planners.reference import ReferencePlanner

        run_batches(stages, bench, "reference", ReferencePlanner(**limits))
        return stages.result("cuRobo plans on a GPU only")
    if importlib.util.find_spec("curobo") is None:
        return stages.result("no package curobo")
    run_curobo(stages, bench, limits)
    return stages.result()


def run_curobo(stages: _Stages, bench: _Bench, limits: dict[str, Any]) -> None:
    """Run cuRobo's stages; the first that fails is the last."""
    from nimbus.datagen.plan.curobo.planner import CuroboPlanner
    from nimbus.datagen.plan.curobo.process import curobo_process

    planner = CuroboPlanner(**limits)

    def start(name: str) -> Measured:
        begin = time.perf_counter()
        stages.say(f"cuRobo's process runs on {curobo_process().device}")
        started = time.perf_counter() - begin
        bench.plan_at_once(planner, range(1))
        return {"planner": name, "start_s": started, "first_plan_s": time.perf_counter() - begin - started}, []

    if not stages.run("curobo v2, first plan", start, limit=_FIRST):
        return
    run_batches(stages, bench, "curobo v2", planner)


def run_batches(stages: _Stages, bench: _Bench, name: str, planner: BatchPlanner) -> None:
    """Plan the problems one by one, and then in batches."""
    if stages.run(name, lambda stage: bench.singly(stage, planner, _ENOUGH["curobo"]), limit=_LAST):
        together = f"{name}, {planner.batch_size} at once"
        stages.run(together, lambda stage: bench.at_once(stage, planner), limit=_LAST)


class _Stages:
    """Stages of the part, each with its row or its failure."""

    def __init__(self) -> None:
        self._begin = time.perf_counter()
        self._rows: list[Row] = []
        self._problems: list[str] = []

    def say(self, text: str) -> None:
        """Report progress with the time since the part began."""
        sys.stderr.write(f"motion {time.perf_counter() - self._begin:6.1f} s  {text}\n")
        sys.stderr.flush()

    def run(self, name: str, stage: Callable[[str], Measured], limit: float = 0.0) -> bool:
        """Run a stage and return True if it ended well; after ``limit`` seconds cuRobo's process is ended."""
        self.say(f"{name}: begins")
        try:
            with _limited(limit):
                row, problems = stage(name)
        except Exception as error:
            # Earlier measurements are still reported, because time on a GPU is scarce.
            sys.stderr.write(traceback.format_exc())
            first = str(error).strip().splitlines() or [""]
            self._problems.append(f"{name}: {type(error).__name__}: {first[0]} … {first[-1]}"[:400])
            self.say(f"{name}: failed")
            return False
        self._problems += problems
        self._rows.append(row)
        self.say(f"{name}: {row}")
        return True

    def result(self, skipped: str = "") -> PartResult:
        return PartResult(rows=tuple(self._rows), problems=tuple(self._problems), skipped=skipped)


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """End cuRobo's process after a time; the waiting request then fails."""
    from nimbus.datagen.plan.curobo.process import interrupt_curobo

    timer = threading.Timer(seconds, interrupt_curobo)
    timer.daemon = True
    if seconds:
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


class _Bench:
    """The problems, each in a separate scene.

    Args:
        say: Called with each line of progress.
        count: Number of problems.
    """

    def __init__(self, say: Callable[[str], None], count: int) -> None:
        from tests.support import panda_table

        self._say, self._count = say, count
        model = panda_table.table_model(cubby=False, half=0.18, roof=0.46)
        self._new_scene = lambda: panda_table.make_scene(model)
        self._scenes: list[Any] = []
        self._exact = panda_table.make_scene(model, margin=0.0)
        self._single: dict[int, bytes] = {}

    def singly(self, name: str, planner: Any, enough: float) -> Measured:
        """Plan the problems one by one; the first is planned beforehand, so compiling is not measured.

        Each problem has the row that it has in its batch; the rows before it are filled with copies.
        """
        rows = getattr(planner, "batch_size", 1)
        self.plan_at_once(planner, range(1))
        plans: dict[int, Any] = {}
        seconds: list[float] = []
        begin = time.perf_counter()
        for index in range(self._count):
            if time.perf_counter() - begin > enough:
                self._say(f"{name}: stopped after {index} problems")
                break
            (*_, plans[index]), spent = self.plan_at_once(planner, [index] * (index % rows + 1))
            seconds.append(spent)
            if index % 10 == 9 or spent > 5.0:
                self._say(f"{name}: problem {index} took {spent:.3f} s")
        self._single = {index: plan.positions.tobytes() for index, plan in plans.items() if plan}
        return self._checked(name, plans, seconds)

    def at_once(self, name: str, planner: Any) -> Measured:
        """Plan the problems in batches, and count the motions that are equal to those planned one by one."""
        plans: dict[int, Any] = {}
        seconds: list[float] = []
        for first in range(0, self._count, planner.batch_size):
            if sum(seconds) > _ENOUGH["curobo"]:
                break
            indices = range(first, min(first + planner.batch_size, self._count))
            found, spent = self.plan_at_once(planner, indices)
            plans |= dict(zip(indices, found, strict=True))
            seconds.append(spent)
            self._say(f"{name}: {sum(map(bool, found))} of {len(found)} in {spent:.3f} s")
        both = [index for index, plan in plans.items() if plan and index in self._single]
        equal = sum(plans[index].positions.tobytes() == self._single[index] for index in both)
        row, problems = self._checked(name, plans, seconds)
        return row | {"equal_to_single": f"{equal} of {len(both)}"}, problems

    def plan_at_once(self, planner: Any, indices: Sequence[int]) -> tuple[list[Any], float]:
        """Plan some problems in one call, and return the plans with the wall time [s]."""
        from benchmarks.motion_plan import draw_problem
        from nimbus.datagen.plan.motion import MotionQuery
        from nimbus.datagen.random_streams import generator

        queries = []
        for row, index in enumerate(indices):
            if row == len(self._scenes):
                self._scenes.append(self._new_scene())
            problem = draw_problem(self._scenes[row], "tabletop", index, seed=_SEED)
            self._scenes[row].hold(problem.held, problem.tool_T_object)
            rng = generator(_SEED, "gpu", "plan", index)
            queries.append(
                MotionQuery(scene=self._scenes[row], start_q=problem.start_q, goals=tuple(problem.goals), rng=rng)
            )
        begin = time.perf_counter()
        found = planner.plan_batch(queries)
        return found, time.perf_counter() - begin

    def _checked(self, name: str, plans: dict[int, Any], seconds: list[float]) -> Measured:
        """Return the figures of some plans, each checked in the exact scene."""
        from benchmarks.motion_plan import draw_problem
        from nimbus.datagen.plan.verify import first_collision

        solved = {index: plan for index, plan in plans.items() if plan}
        problems = [] if solved else [f"{name}: no problem is solved"]
        for index, plan in solved.items():
            problem = draw_problem(self._scenes[0], "tabletop", index, seed=_SEED)
            self._exact.hold(problem.held, problem.tool_T_object)
            collision = first_collision(self._exact, plan.positions, step=_STEP)
            if collision and collision.depth > _DEEPEST:
                problems.append(f"{name}: problem {index}: {collision}")
        failures = Counter(f"{plan.status}: {plan.detail}" for plan in plans.values() if not plan)
        for failure, times in failures.most_common(8):
            self._say(f"{name}: {times} x {failure}")
        row: Row = {
            "planner": name,
            "problems": len(plans),
            "solved": len(solved),
            "plans_per_s": len(plans) / sum(seconds),
            "call_s": float(np.median(seconds)),
            "longest_s": max(seconds),
            "motion_s": float(np.median([plan.duration for plan in solved.values()])) if solved else 0.0,
        }
        for key in ("plan_time", "world_time", "call_time", "timing_time"):
            if spent := [plan.statistics[key] for plan in solved.values() if key in plan.statistics]:
                row[f"{key}_s"] = float(np.median(spent))
        return row, problems
