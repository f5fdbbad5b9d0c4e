"""Motion planning with a held object, from the table into a bin: success, planning time, duration, repeatability.

Run it as ``python tests/benchmarks/motion_plan.py [--problems 60] [--json FILE]`` with one BLAS thread. Times are CPU
seconds of one core. «free» re-checks every 5 mrad of what is commanded in a second model without any margin.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "exts/nimbus.datagen"), str(ROOT / "tests/datagen/plan")]
os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

import numpy as np  # noqa: E402

from nimbus.datagen.plan.ompl import OmplPlanner  # noqa: E402
from nimbus.datagen.plan.path import path_is_free  # noqa: E402
from nimbus.datagen.plan.scene import PlanningScene  # noqa: E402
from nimbus.datagen.streams import stream  # noqa: E402

panda = importlib.import_module("panda_table")

HELD = {"carton": 0.05, "can": 0.055, "block": 0.02, "stick": 0.08}
"""Half height of the objects that are carried [m]."""


@dataclass(frozen=True)
class Problem:
    """A held object 10 cm above the table, and poses of the tool above a bin."""

    index: int
    held: str
    tool_T_object: np.ndarray
    start_q: np.ndarray
    goals: list[np.ndarray]


def draw_problem(scene: PlanningScene, index: int) -> Problem:
    """The problem of that number."""
    rng = stream(0, "motion_plan", index)
    held = list(HELD)[index % len(HELD)]
    tool_T_object = np.diag([1.0, -1.0, -1.0, 1.0])
    tool_T_object[2, 3] = rng.uniform(-0.01, HELD[held] - 0.02)
    scene.hold(held, tool_T_object)
    while True:
        x, y, yaw = rng.uniform((0.3, -0.25, -1.5), (0.65, 0.25, 1.5))
        height = 0.1 + HELD[held] + tool_T_object[2, 3]
        start_q = scene.arm.solve(panda.top_down(x, y, height, yaw), panda.HOME)
        if start_q is not None and not scene.in_collision(start_q):
            break
    bin_xy = list(panda.BINS.values())[rng.integers(len(panda.BINS))]
    center = bin_xy + rng.uniform(-0.05, 0.05, size=2)
    height = 0.19 + HELD[held] + tool_T_object[2, 3]
    goals = [panda.top_down(*center, height, turn) for turn in rng.uniform(-0.4, 0.4) + np.pi / 2 * np.arange(-2, 2)]
    return Problem(index, held, tool_T_object, start_q, goals)


def measure(scene: PlanningScene, exact: PlanningScene, planner: OmplPlanner, problem: Problem) -> dict[str, float]:
    """Plan one problem and check the plan."""
    for view in (scene, exact):
        view.hold(problem.held, problem.tool_T_object)
    begin = time.process_time()
    plan = planner.plan_pose(scene, problem.start_q, problem.goals, rng=stream(0, "plan", problem.index))
    spent = time.process_time() - begin
    free = bool(plan) and path_is_free(plan.positions, lambda q: not exact.in_collision(q), step=0.005)
    if not free:
        sys.stderr.write(f"{problem.index:4d} {problem.held} {plan.status} {plan.detail}\n")
    return {
        "solved": float(bool(plan)),
        "free": float(free),
        "total_ms": 1e3 * spent,
        "ik_ms": 1e3 * plan.statistics.get("ik_time", np.nan),
        "path_ms": 1e3 * plan.statistics.get("plan_time", np.nan),
        "timing_ms": 1e3 * plan.statistics.get("timing_time", np.nan),
        "duration_s": plan.duration,
        "length_rad": plan.statistics.get("path_length", np.nan),
        "clearance_mm": 1e3 * plan.statistics.get("clearance", np.nan),
        "hash": float(int(hashlib.sha256(plan.positions.tobytes()).hexdigest()[:12], 16)),
    }


def run(order: list[int]) -> dict[int, dict[str, float]]:
    """Measure these problems in this order."""
    model = panda.table_model()
    scene, exact = panda.make_scene(model), panda.make_scene(model, margin=0.0)
    planner = OmplPlanner(velocity_limits=panda.VELOCITY, acceleration_limits=panda.ACCELERATION)
    planner.plan_joints(scene, panda.HOME, panda.HOME + 0.1, rng=stream(0, "warm"))
    return {index: measure(scene, exact, planner, draw_problem(scene, index)) for index in order}


def main() -> None:
    """Print the table, and check the plans against a second process that plans them in reverse order."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=60)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--reverse", action="store_true", help="print the hashes only, planned in reverse order")
    options = parser.parse_args()
    order = list(range(options.problems))
    rows = run(order[::-1] if options.reverse else order)
    hashes = [rows[index].pop("hash") for index in order]
    if options.reverse:
        sys.stdout.write(json.dumps(hashes))
        return
    command = [sys.executable, "-W", "ignore", __file__, "--reverse", "--problems", str(options.problems)]
    again = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
    lines = [f"{'':14s}{'median':>9s}{'p90':>9s}{'mean':>9s}{'worst':>9s}"]
    result: dict[str, object] = {"problems": options.problems, "same_in_reverse_in_another_process": again == hashes}
    for name in rows[0]:
        values = np.array([rows[index][name] for index in order])
        worst = np.min if name in ("solved", "free", "clearance_mm") else np.max
        figures = [np.nanmedian(values), np.nanpercentile(values, 90), np.nanmean(values), worst(values)]
        lines.append(f"{name:14s}" + "".join(f"{figure:9.3f}" for figure in figures))
        result[name] = dict(zip(("median", "p90", "mean", "worst"), map(float, figures), strict=True))
    lines.append(f"same bytes in reverse order in another process: {again == hashes}")
    sys.stdout.write("\n".join(lines) + "\n")
    if options.json:
        options.json.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
