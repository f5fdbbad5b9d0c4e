"""What lies below: heights of surfaces, felt from above by plumb lines."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import mujoco
import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.arrays import FloatArray

if TYPE_CHECKING:
    from nimbus.datagen.tasks.workcell_interface import Workcell


_DEPTH = 2.0
"""[m] Nothing is looked for further below."""


def measure_support_heights(
    cell: Workcell, points: FloatArray, *, top: float, ignored: Collection[str] = ()
) -> FloatArray:
    """Height of what a plumb line meets first, below each of some points, past the robot and what it holds.

    Args:
        cell: The scene.
        points: (N, 2) x, y in the world [m].
        top: Height from which the lines hang down [m].
        ignored: Further bodies that they pass through.

    Returns:
        (N,) [m], ``-inf`` where there is nothing.
    """
    passed = _passed(cell, ignored)
    return np.array([_plumb(cell, np.array([x, y, top]), passed) for x, y in points])


def _passed(cell: Workcell, ignored: Collection[str]) -> NDArray[np.bool_]:
    """(B,) the bodies that count as air."""
    model = cell.simulation.model
    hand = model.body(cell.robot.tool.link).id
    passed = np.asarray(model.body_rootid == model.body_rootid[hand]) & (np.arange(model.nbody) > 0)
    for name in (*ignored, *([cell.held] if cell.held else [])):
        passed[model.body(name).id] = True
    return passed


def _plumb(cell: Workcell, start: FloatArray, passed: NDArray[np.bool_]) -> float:
    model, data = cell.simulation.model, cell.simulation.data
    down, geom = np.array([0.0, 0.0, -1.0]), np.array([-1], dtype=np.int32)
    lowest = start[2] - _DEPTH
    while start[2] > lowest:
        distance = mujoco.mj_ray(model, data, start, down, None, 1, -1, geom)
        if distance < 0:
            break
        solid = model.geom_contype[geom[0]] or model.geom_conaffinity[geom[0]]
        if solid and not passed[model.geom_bodyid[geom[0]]]:
            return float(start[2] - distance)
        start = start - (0.0, 0.0, distance + 1e-4)
    return -np.inf
