"""Grasp axes of an object's variant, sampled once: they depend on its shape and nothing else."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.plan.grasp import GraspAxes, GripperShape, find_axes
from nimbus.datagen.random_streams import generator

if TYPE_CHECKING:
    from nimbus.datagen.episode.layout import PlacedObject

_THINNEST_WALL = 0.002
"""[m] Of a container that is held by its wall."""


def grasp_axes(item: PlacedObject, gripper: GripperShape) -> GraspAxes:
    """Antipodal axes in the object's own frame; the same for every episode with this variant."""
    return model_axes(item.library, item.kind, item.variant, gripper, item.scale)


@lru_cache(maxsize=512)
def model_axes(library: str, kind: str, variant: int, gripper: GripperShape, scale: float = 1.0) -> GraspAxes:
    """The same, of a variant of a library that is open."""
    model = open_library(library).model(kind, variant, scale)
    rng = generator(0, "grasps", kind, variant)
    if not model.open_inside:
        return find_axes(model.vertices, model.faces, gripper, rng=rng, center_of_mass=model.center_of_mass)
    return find_axes(
        model.vertices,
        model.faces,
        gripper,
        rng=rng,
        center_of_mass=model.center_of_mass,
        min_width=_THINNEST_WALL,
        open_inside=True,
    )
