"""Grasp axes of an object's variant, sampled once: they depend on its shape and nothing else."""

from __future__ import annotations

from functools import lru_cache

from nimbus.datagen.layout import PlacedObject
from nimbus.datagen.objects.library import ObjectLibrary
from nimbus.datagen.plan.grasp import GraspAxes, find_axes
from nimbus.datagen.streams import stream

_FINGER_ROOM = 0.006
"""[m] The open fingers are so much further apart than what they close on."""


def grasp_axes(item: PlacedObject, *, max_width: float) -> GraspAxes:
    """Antipodal axes in the object's own frame; the same for every episode with this variant."""
    return _axes(item.library, item.kind, item.variant, max_width)


@lru_cache(maxsize=512)
def _axes(library: str, kind: str, variant: int, max_width: float) -> GraspAxes:
    model = ObjectLibrary.open(library).model(kind, variant)
    return find_axes(
        model.vertices,
        model.faces,
        rng=stream(0, "grasps", kind, variant),
        center_of_mass=model.center_of_mass,
        max_width=max_width - _FINGER_ROOM,
    )
