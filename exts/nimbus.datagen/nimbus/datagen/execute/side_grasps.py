"""Grasps around an object's body with a nearly level hand: one from above cannot turn it over or pour from it."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from nimbus.datagen.objects.library import ObjectLibrary
from nimbus.datagen.plan.grasp import Grasp, GraspAxes, GripperShape, find_axes, rank_grasps
from nimbus.datagen.streams import stream

if TYPE_CHECKING:
    from nimbus.datagen.execute.workcell import Workcell

_TURNS = (1.57, -1.57, 1.4, -1.4, 1.2, -1.2)
"""[rad] Turns of the hand from straight down that are looked at."""
_LEVEL = 1.0
"""[rad] Least tilt from straight down."""
_THICK = 0.018
"""[m] What is thinner is a wall or a handle."""


def side_grasps(cell: Workcell, name: str, *, limit: int = 60) -> list[Grasp]:
    """Ways to grasp an object from the side where it is now, best first."""
    item = cell.objects[name]
    ranked = rank_grasps(
        _axes_around(item.library, item.kind, item.variant, cell.robot.gripper.shape),
        cell.pose(name),
        table_height=cell.lowest_point(name),
        max_tilt=1.58,
        limit=limit,
        turns=_TURNS,
    )
    return [grasp for grasp in ranked if np.arccos(np.clip(-grasp.world_T_tool[2, 2], -1.0, 1.0)) >= _LEVEL]


@lru_cache(maxsize=128)
def _axes_around(library: str, kind: str, variant: int, gripper: GripperShape) -> GraspAxes:
    """Axes through the whole body, hollow or not."""
    model = ObjectLibrary.open(library).model(kind, variant)
    rng = stream(0, "side grasps", kind, variant)
    return find_axes(
        model.vertices, model.faces, gripper, rng=rng, center_of_mass=model.center_of_mass, min_width=_THICK
    )
