"""Sweep: push several things into a region."""

from __future__ import annotations

import numpy as np

from nimbus.datagen.execute.toolkit import object_center, push_object
from nimbus.datagen.plugin import (
    Field,
    FloatArray,
    ObjectsReference,
    Ratio,
    Reason,
    RegionReference,
    Skill,
    SkillFailure,
    Workcell,
    register,
)

_AGAIN = (Reason.NO_IK, Reason.NO_PATH, Reason.OFF_TARGET, Reason.TOPPLED)
"""Failures after which an object is tried again later; an object that fell over is pushed as it lies."""


@register("skill", "sweep")
class Sweep(Skill):
    """Push objects across the surface into a region, one at a time; the object nearest to the region comes first.

    Needs an empty gripper and objects that do not roll; the objects may push each other. Fails with ``spilled`` when
    too few objects end in the region.
    """

    main = "objects"
    hand = "keeps"
    needs = ("empty_hand",)
    gives = ("at(objects, to)",)
    objects: ObjectsReference = Field(description="Objects to sweep: a group, or a list of objects.")
    to: RegionReference = Field(description="Region that receives the objects.")
    share: Ratio = Field(1.0, gt=0, le=1, description="Fraction of the objects that must end in the region.")
    strokes: int = Field(5, ge=1, le=20, description="Largest number of strokes for each object.")
    speed: float = Field(0.15, gt=0, le=0.5, description="Speed of the fingers [m/s].")

    def run(self, arm: Workcell) -> None:
        """Push one thing after another."""
        names = [self.objects] if isinstance(self.objects, str) else list(self.objects)
        center = np.array(arm.regions[self.to].center)
        names.sort(key=lambda name: float(np.linalg.norm(object_center(arm, name) - center)))
        for name in names + names[::-1]:  # the second pass is reversed, for objects that block each other
            try:
                self._sweep(arm, name, center, names)
            except SkillFailure as failure:
                if failure.reason not in _AGAIN:
                    raise
        arm.begin("retreat")
        arm.open()
        inside = np.mean([self._is_inside(arm, name) for name in names])
        if inside < self.share:
            raise SkillFailure(Reason.SPILLED, f"{inside:.0%} of them are in {self.to}")

    def _sweep(self, arm: Workcell, name: str, center: FloatArray, names: list[str]) -> None:
        if self._is_inside(arm, name):
            return

        def is_there() -> bool:
            return self._is_inside(arm, name, margin=0.15)

        push_object(
            arm, name, center, tolerance=0.0, strokes=self.strokes, speed=self.speed, until=is_there, touching=names
        )

    def _is_inside(self, arm: Workcell, name: str, *, margin: float = 0.0) -> bool:
        """Return True if a thing's center is in the region, ``margin`` times its size or more from the edge."""
        region = arm.regions[self.to]
        off = np.abs(object_center(arm, name) - region.center)
        return bool(np.all(off <= (0.5 - margin) * np.array(region.size)))
