"""Check that the robot reaches the initial and final positions of objects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from nimbus.datagen.doctor.case import make_finding
from nimbus.datagen.episode.layout import PhysicalLayout
from nimbus.datagen.errors import Diagnostic
from nimbus.datagen.execute.planning_scenes import planning_scene
from nimbus.datagen.geometry.transforms import make_transform, quat_from_axis_angle
from nimbus.datagen.plan.ik import solve_ik
from nimbus.datagen.random_streams import generator
from nimbus.datagen.tasks.statements import Skill
from nimbus.datagen.tasks.steps import walk

if TYPE_CHECKING:
    from nimbus.datagen.doctor.case import Case

_CELL = 0.05
"""Side of a cell of the reach maps [m]."""
_ENOUGH = 0.7
"""Fraction of a region's cells that should be within reach."""
_ABOVE = 0.08
"""Height above the rim of a receptacle [m]."""
_TURNS = np.radians([0, 90, 45, -45])
_DOWN = make_transform((0, 0, 0), (0.0, 1.0, 0.0, 0.0))
_PLACES = ("into", "on", "beside")


def check_regions(case: Case) -> Iterator[Diagnostic]:
    """Find regions of which a large part is out of reach."""
    for name, found in case.assets.reach.items():
        share = float(found.cells.mean())
        if share >= _ENOUGH:
            continue
        keys = ("regions", name)
        low, high = _largest(found.cells)
        region = case.task.regions[name]
        corner = np.subtract(region.center, np.divide(region.size, 2))
        first = corner + np.array(low) * _CELL
        last = np.minimum(corner + (np.array(high) + 1) * _CELL, corner + region.size)
        center, size = (first + last) / 2, last - first
        instead = f"write center: [{center[0]:.3g}, {center[1]:.3g}], size: [{size[0]:.3g}, {size[1]:.3g}]"
        what = f"the robot reaches {share:.0%} of the region"
        yield make_finding("reach", case.task, keys, what, instead=instead)


def _largest(cells: np.ndarray) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the first and last cell of the largest rectangle within reach."""
    best, area = ((0, 0), (0, 0)), 0
    rows, columns = cells.shape
    for top in range(rows):
        for left in range(columns):
            right = columns
            for bottom in range(top, rows):
                gaps = np.flatnonzero(~cells[bottom, left:right])
                right = left + int(gaps[0]) if len(gaps) else right
                if right == left:
                    break
                if (bottom - top + 1) * (right - left) > area:
                    area = (bottom - top + 1) * (right - left)
                    best = (top, left), (bottom, right - 1)
    return best


def check_targets(case: Case) -> Iterator[Diagnostic]:
    """Find target fixtures above which no posture can bring the tool."""
    wanted: dict[str, tuple[str | int, ...]] = {}
    for step, loops in walk(case.task.steps):
        for field in _PLACES:
            text = getattr(step.statement, field, None)
            if isinstance(step.statement, Skill) and isinstance(text, str):
                for name in case.fixtures(text, loops):
                    wanted.setdefault(name, (*step.keys, field))
    if not wanted:
        return
    case.simulation.load(PhysicalLayout(objects=()))
    scenes = [(planning_scene(case.simulation, one.name), np.array(one.arm.home)) for one in case.assets.robot.arms]
    for scene, _ in scenes:
        scene.set_world(case.simulation.data.qpos)
    for name, keys in wanted.items():
        low, high = case.assets.stage.fixtures[name].world_bounds
        x, y, z = (low[0] + high[0]) / 2, (low[1] + high[1]) / 2, high[2] + _ABOVE
        goals = [make_transform((x, y, z), quat_from_axis_angle((0, 0, 1), float(turn))) @ _DOWN for turn in _TURNS]
        rng = generator(0, "doctor", "reach", name)
        if not any(
            solve_ik(scene, goal, seed_q=home, rng=rng, solutions=1) for scene, home in scenes for goal in goals
        ):
            reached = [other for other in case.assets.stage.fixtures if other not in wanted]
            what = f"the robot cannot bring its hand above '{name}'"
            instead = (
                f"name a nearer target{f', such as {reached[0]}' if reached else ''}, or move '{name}' in the scene"
            )
            yield make_finding("reach", case.task, keys, what, instead=instead, certain=len(wanted) == 1)
