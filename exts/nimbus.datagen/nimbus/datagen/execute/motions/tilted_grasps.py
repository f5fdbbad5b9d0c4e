"""Grasps around an object's body with a leaning or level hand: one from above cannot turn it over or pour from it."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.plan.grasp import Grasp, GraspAxes, GripperShape, find_axes, rank_grasps
from nimbus.datagen.random_streams import generator

if TYPE_CHECKING:
    from nimbus.datagen.tasks.workcell_interface import Workcell

_TURNS = (0.6, -0.6, 0.9, -0.9, 1.2, -1.2, 1.4, -1.4, 1.57, -1.57)
"""[rad] Turns of the hand from straight down that are looked at."""
_CLEAR = 0.015
"""[m] The arm behind the hand stays so far from everything, since a level hand is low."""
_THICK = 0.018
"""[m] What is thinner is a wall or a handle."""


def make_tilted_grasps(cell: Workcell, name: str, *, least_tilt: float, limit: int = 60) -> list[Grasp]:
    """Ways to grasp an object from the side where it is now, with an arm that has room, best first.

    Args:
        cell: The scene.
        name: The object.
        least_tilt: Of the hand from straight down [rad].
        limit: Grasps that are looked at.
    """
    item = cell.objects[name]
    ranked = rank_grasps(
        _axes_around(item.library, item.kind, item.variant, item.scale, cell.robot.gripper.shape),
        cell.pose(name),
        table_height=cell.lowest_point(name),
        max_tilt=1.58,
        limit=limit,
        turns=[turn for turn in _TURNS if abs(turn) >= least_tilt],
    )
    leaning = [grasp for grasp in ranked if -grasp.world_T_tool[2, 2] <= np.cos(least_tilt)]
    return [grasp for grasp in leaning if _has_room(cell, grasp)]


def _has_room(cell: Workcell, grasp: Grasp) -> bool:
    """Whether the arm gets there with its links clear of everything; the gripper is looked at when it is planned."""
    scene = cell.scene
    q = scene.arm.solve(grasp.world_T_tool, cell.arm_command)
    if q is None:
        return False
    with scene.nearer(_CLEAR):
        return all(scene.gripper_bodies.intersection(pair) for pair in scene.contacts(q))


@lru_cache(maxsize=128)
def _axes_around(library: str, kind: str, variant: int, scale: float, gripper: GripperShape) -> GraspAxes:
    """Axes through the whole body, hollow or not."""
    model = open_library(library).model(kind, variant, scale)
    rng = generator(0, "side grasps", kind, variant)
    return find_axes(
        model.vertices, model.faces, gripper, rng=rng, center_of_mass=model.center_of_mass, min_width=_THICK
    )
