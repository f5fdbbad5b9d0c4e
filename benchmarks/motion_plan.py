"""Motion planning with a held object: success, planning time, duration, repeatability.

``tabletop``: 50 motions from above the table into one of three bins. ``cubby``: 20 motions into a bin in a box that is
0.36 m wide, has a roof at 0.46 m, and is open on the side away from the robot.

Run it as ``python benchmarks/motion_plan.py [--seed 1] [--json FILE]`` with one BLAS thread. Times are CPU
seconds of one core. The column ``free`` is the result of checking the commanded motion every 5 mrad in a second model
without margins.
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

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "exts/nimbus.datagen"), str(ROOT)]
os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

import numpy as np  # noqa: E402

from nimbus.datagen.plan.ompl import OmplPlanner  # noqa: E402
from nimbus.datagen.plan.path import path_is_free  # noqa: E402
from nimbus.datagen.plan.scene import PlanningScene  # noqa: E402
from nimbus.datagen.random_streams import generator  # noqa: E402

panda = importlib.import_module("tests.support.panda_table")

HELD = {"carton": 0.05, "can": 0.055, "block": 0.02, "stick": 0.08}
"""Half height of the carried objects [m]."""
SETS = {"tabletop": 50, "cubby": 20}
"""Number of problems of each set."""
TRIES = 200
"""Number of drawn poses after which a problem without a free pose is an error."""


@dataclass(frozen=True)
class Problem:
    """A held object 10 cm above the table, and poses of the tool in or above a bin."""

    held: str
    tool_T_object: np.ndarray
    start_q: np.ndarray
    goals: list[np.ndarray]


def draw_problem(scene: PlanningScene, name: str, index: int, *, seed: int) -> Problem:
    """Return the problem with a given number; its scene contains the held object."""
    rng = generator(seed, "motion_plan", name, index)
    held = list(HELD)[index % len(HELD)]
    tool_T_object = np.diag([1.0, -1.0, -1.0, 1.0])
    tool_T_object[2, 3] = rng.uniform(-0.01, HELD[held] - 0.02)
    scene.hold(held, tool_T_object)
    below = HELD[held] + tool_T_object[2, 3]
    return Problem(
        held, tool_T_object, _start(scene, rng, 0.1 + below), GOALS[name](scene, rng, below, tool_T_object[2, 3])
    )


def _start(scene: PlanningScene, rng: np.random.Generator, height: float) -> np.ndarray:
    for _ in range(TRIES):
        x, y, yaw = rng.uniform((0.3, -0.25, -1.5), (0.65, 0.25, 1.5))
        q = scene.arm.solve(panda.top_down(x, y, height, yaw), panda.HOME)
        if q is not None and not scene.in_collision(q):
            return q
    raise RuntimeError("no free start")


def _above_a_bin(_: PlanningScene, rng: np.random.Generator, below: float, shift: float) -> list[np.ndarray]:
    """Return four rotations of the hand about the vertical, with the object slightly above the rim of a bin."""
    center = list(panda.BINS.values())[rng.integers(len(panda.BINS))] + rng.uniform(-0.05, 0.05, size=2)
    yaw = rng.uniform(-0.4, 0.4)
    return [panda.top_down(*center, 0.19 + below, yaw + turn) for turn in np.pi / 2 * np.arange(-2, 2)]


def _inside_the_cubby(scene: PlanningScene, rng: np.random.Generator, below: float, shift: float) -> list[np.ndarray]:
    """Return a pose in which the hand leans in through the opening: the first drawn pose with a known free posture."""
    for _ in range(TRIES):
        x, y, height = np.array([*panda.BINS["left"], 0.2]) + rng.uniform(-0.06, 0.06, size=3)
        lean, yaw = rng.uniform(0.6, 1.2), rng.uniform(-0.4, 0.4)
        goals = []
        for turn in (-np.pi / 2, np.pi / 2):
            pose = panda.top_down(0.0, 0.0, 0.0, yaw + turn)
            cos, sin = np.cos(lean), np.sin(lean)
            pose[:3, :3] = np.array([[1, 0, 0], [0, cos, -sin], [0, sin, cos]]) @ pose[:3, :3]
            pose[:3, 3] = x, y, height
            goals.append(pose)
        seeds = [panda.HOME, *rng.uniform(*scene.limits.T, size=(4, len(scene.limits)))]
        postures = (scene.arm.solve(goal, q) for goal in goals for q in seeds)
        if any(q is not None and not scene.in_collision(q) for q in postures):
            return goals
    raise RuntimeError("no free goal")


GOALS = {"tabletop": _above_a_bin, "cubby": _inside_the_cubby}


def measure(
    scene: PlanningScene, exact: PlanningScene, planner: OmplPlanner, problem: Problem, rng: np.random.Generator
) -> dict[str, float]:
    """Plan one problem and check the plan."""
    for view in (scene, exact):
        view.hold(problem.held, problem.tool_T_object)
    begin = time.process_time()
    plan = planner.plan_pose(scene, problem.start_q, problem.goals, rng=rng)
    spent = time.process_time() - begin
    free = bool(plan) and path_is_free(plan.positions, lambda q: not exact.in_collision(q), step=0.005)
    return {
        "solved": float(bool(plan)),
        "free": float(free or not plan),
        "total_ms": 1e3 * spent,
        "ik_ms": 1e3 * plan.statistics.get("ik_time", np.nan),
        "path_ms": 1e3 * plan.statistics.get("plan_time", np.nan),
        "timing_ms": 1e3 * plan.statistics.get("timing_time", np.nan),
        "checks": plan.statistics.get("checks", np.nan),
        "duration_s": plan.duration if plan else np.nan,
        "length_rad": plan.statistics.get("path_length", np.nan),
        "clearance_mm": 1e3 * plan.statistics.get("clearance", np.nan),
        "hash": float(int(hashlib.sha256(plan.positions.tobytes()).hexdigest()[:12], 16)),
    }


def run(name: str, order: list[int], *, seed: int) -> dict[int, dict[str, float]]:
    """Measure the problems of a set in the given order."""
    model = panda.table_model(cubby=name == "cubby", half=0.18, roof=0.46)
    scene, exact = panda.make_scene(model), panda.make_scene(model, margin=0.0)
    planner = OmplPlanner(velocity_limits=panda.VELOCITY, acceleration_limits=panda.ACCELERATION)
    planner.plan_joints(scene, panda.HOME, panda.HOME + 0.1, rng=generator(0, "warm"))
    rows: dict[int, dict[str, float]] = {}
    for index in order:
        problem = draw_problem(scene, name, index, seed=seed)
        rows[index] = measure(scene, exact, planner, problem, generator(seed, "plan", name, index))
        if not (rows[index]["solved"] and rows[index]["free"]):
            sys.stderr.write(f"{name} {index} with the {problem.held}: {rows[index]}\n")
    return rows


def table(name: str, rows: dict[int, dict[str, float]]) -> tuple[list[str], dict[str, object]]:
    """Return the lines to print, and their figures."""
    lines = [f"{name:14s}{'median':>10s}{'p90':>10s}{'mean':>10s}{'worst':>10s}"]
    result: dict[str, object] = {"problems": len(rows)}
    for figure in next(iter(rows.values())):
        values = np.array([row[figure] for row in rows.values()])
        worst = np.nanmin if figure in ("solved", "free", "clearance_mm") else np.nanmax
        figures = [np.nanmedian(values), np.nanpercentile(values, 90), np.nanmean(values), worst(values)]
        lines.append(f"{figure:14s}" + "".join(f"{value:10.3f}" for value in figures))
        result[figure] = dict(zip(("median", "p90", "mean", "worst"), map(float, figures), strict=True))
    return lines, result


def main() -> None:
    """Print a table for each set, and check the plans against a second process that plans them in reverse order."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--problems", type=int, help="number of problems per set, instead of 50 and 20")
    parser.add_argument("--seed", type=int, default=1, help="seed of the problems and the plans")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--reverse", action="store_true", help="print the hashes only, planned in reverse order")
    options = parser.parse_args()
    result: dict[str, object] = {"seed": options.seed}
    hashes: dict[str, list[float]] = {}
    for name in options.sets:
        order = list(range(options.problems or SETS[name]))
        rows = run(name, order[::-1] if options.reverse else order, seed=options.seed)
        hashes[name] = [rows[index].pop("hash") for index in order]
        if not options.reverse:
            lines, result[name] = table(name, rows)
            sys.stdout.write("\n".join(lines) + "\n\n")
    if options.reverse:
        sys.stdout.write(json.dumps(hashes))
        return
    command = [sys.executable, "-W", "ignore", __file__, "--reverse", *sys.argv[1:]]
    again = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout)
    result["same_in_reverse_in_another_process"] = again == hashes
    sys.stdout.write(f"same bytes in reverse order in another process: {again == hashes}\n")
    if options.json:
        options.json.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
