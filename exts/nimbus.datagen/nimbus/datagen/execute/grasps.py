"""Grasps of an object's variant, sampled once: they depend on its shape and nothing else."""

from __future__ import annotations

from functools import lru_cache

from nimbus.datagen.layout import PlacedObject
from nimbus.datagen.objects.library import ObjectLibrary
from nimbus.datagen.plan.grasp import Grasp, sample_grasps
from nimbus.datagen.streams import stream

_COUNT = 120


def grasps_of(item: PlacedObject, *, max_width: float) -> list[Grasp]:
    """Antipodal grasps in the object's own frame, best first; the same for every episode with this variant."""
    return _grasps(item.library, item.kind, item.variant, max_width)


@lru_cache(maxsize=512)
def _grasps(library: str, kind: str, variant: int, max_width: float) -> list[Grasp]:
    model = ObjectLibrary.open(library).model(kind, variant)
    rng = stream(0, "grasps", kind, variant)
    return sample_grasps(
        model.vertices,
        model.faces,
        rng=rng,
        max_width=max_width - 0.006,
        center_of_mass=model.center_of_mass,
        count=_COUNT,
    )
