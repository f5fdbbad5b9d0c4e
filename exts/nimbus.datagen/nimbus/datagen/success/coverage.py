"""Conditions on the fraction of a region that is wiped, or of a group of objects that is inside a container."""

from __future__ import annotations

import itertools
from collections.abc import Hashable
from typing import ClassVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.execute.toolkit import count_inside
from nimbus.datagen.geometry.hulls import qhull
from nimbus.datagen.plugin import (
    ContainerReference,
    Field,
    FloatArray,
    ObjectReference,
    ObjectsReference,
    Outcome,
    Predicate,
    Ratio,
    Reason,
    RegionReference,
    World,
    each,
    register,
)

_TOUCH = 0.002
"""Distance within which an object touches the surface [m]."""
_RIM = 0.005
"""Height up to which an object's underside wipes [m]."""
_GRID = 0.01
"""Spacing of the region's sample points [m]."""
_UNDER: WeakKeyDictionary[World, dict[tuple[Hashable, ...], NDArray[np.bool_]]] = WeakKeyDictionary()
"""Points that lay under an object, by region and pose: the path of an attempt is evaluated after each step of a
policy, and an entry costs a convex hull."""


@register("predicate", "wiped")
class Wiped(Predicate):
    """The underside of the object has been on at least 90 % of the region, at some time of the attempt."""

    main = "region"
    states = ("wiped(region)",)
    region: RegionReference = Field(description="The region that must be wiped.")
    object: ObjectReference = Field(description="The object that wipes, such as a sponge or cloth.")
    at_least: Ratio = Field(0.9, gt=0, le=1, description="Smallest wiped fraction of the region.")

    def failure(self, world: World) -> Outcome | None:
        """Return the reason if too little of the region was wiped."""
        region = world.regions[self.region]
        surface = world.stage.surfaces[region.on].upper[2]
        axes = (
            center + np.arange(-size / 2, size / 2 + 1e-9, _GRID)
            for center, size in zip(region.center, region.size, strict=True)
        )
        points = np.array(list(itertools.product(*axes)))
        wiped = np.zeros(len(points), dtype=bool)
        vertices = world.model(self.object).vertices
        area = (self.object, region.on, tuple(region.center), tuple(region.size))
        known = _UNDER.setdefault(world, {})
        for pose in world.path(self.object):
            key = (area, pose.tobytes())
            if key not in known:
                known[key] = _under(vertices @ pose[:3, :3].T + pose[:3, 3], surface, points)
            wiped |= known[key]
        if wiped.mean() >= self.at_least:
            return None
        detail = f"{self.object} went over {wiped.mean():.0%} of {self.region}"
        return Outcome(success=False, reason=Reason.NOT_WIPED, detail=detail)


def _under(vertices: FloatArray, surface: float, points: FloatArray) -> NDArray[np.bool_]:
    """Return flags (N,), True for points (N, 2) of a surface under an object that touches the surface."""
    lowest = vertices[:, 2].min()
    base = vertices[vertices[:, 2] < lowest + _RIM, :2]
    if lowest > surface + _TOUCH or len(base) < 3:
        return np.zeros(len(points), dtype=bool)
    sides = qhull(base).equations
    return np.asarray((points @ sides[:, :2].T + sides[:, 2] <= 0.0).all(axis=1))


@register("predicate", "poured_fraction")
class PouredFraction(Predicate):
    """At least 80 % of the objects, or of the grains of a heap, have their centers of mass within the container."""

    main = "objects"
    version: ClassVar[int] = 2
    states = ("poured_into(objects, container)",)
    objects: ObjectsReference = Field(description="The poured objects: a group, such as beads, or grains.")
    container: ContainerReference = Field(description="The object or fixture that must contain them.")
    at_least: Ratio = Field(0.8, gt=0, le=1, description="Smallest fraction of the objects.")

    def failure(self, world: World) -> Outcome | None:
        """Return the reason if too few are inside."""
        counts = [count_inside(world, self.container, name) for name in each(self.objects)]
        inside, total = sum(count for count, _ in counts), sum(count for _, count in counts)
        if total and inside >= self.at_least * total - 1e-9:
            return None
        detail = f"{inside} of {total} are in {self.container}"
        return Outcome(success=False, reason=Reason.SPILLED, detail=detail)
