"""Conditions on cloth."""

from __future__ import annotations

import numpy as np

from nimbus.datagen.execute.toolkit import find_contacts, find_frame
from nimbus.datagen.plugin import Field, Metres, ObjectReference, Outcome, Predicate, Ratio, Reason, World, register

_HEIGHT = 0.06
"""Largest height of a folded cloth above the surface under it [m]; a heap is higher."""
_SHARE, _LYING = 0.08, 0.15
"""Smallest fraction of a cloth below the axis of a rail on each side, and largest fraction that lies elsewhere."""


@register("predicate", "folded")
class Folded(Predicate):
    """Two opposite corners of the cloth lie on each other, and the cloth is flat."""

    main = "object"
    needs_flexible = "cloth"
    states = ("folded(object)",)
    object: ObjectReference = Field(description="The cloth.")
    within: Metres = Field(0.06, gt=0, le=0.5, description="Largest distance between the two corners.")

    def failure(self, world: World) -> Outcome | None:
        """Return the reason if no two opposite corners are together, or if the cloth is not flat."""
        sheet = world.model(self.object).sheet
        if sheet is None:
            return Outcome(success=False, reason=Reason.NOT_FOLDED, detail=f"{self.object} is not a cloth")
        points, columns = world.points(self.object), sheet.cells[0] + 1
        diagonals = (points[0] - points[-1], points[columns - 1] - points[-columns])
        gap = min(float(np.linalg.norm(way)) for way in diagonals)
        if gap > self.within:
            detail = f"opposite corners of {self.object} are {gap * 100:.0f} cm apart"
            return Outcome(success=False, reason=Reason.NOT_FOLDED, detail=detail)
        height = float(np.ptp(points[:, 2]))
        if height > _HEIGHT:
            detail = f"{self.object} is {height * 100:.0f} cm high, a heap"
            return Outcome(success=False, reason=Reason.NOT_FOLDED, detail=detail)
        return None


@register("predicate", "draped")
class Draped(Predicate):
    """The cloth hangs over the rail, which carries it: parts of it are below the rail's axis on both sides.

    Its tips may touch the surface below. The rail is the frame ``bar`` of an object, with z along the bar.
    """

    main = "object"
    needs_flexible = "cloth"
    frames = {"over": "bar"}  # noqa: RUF012
    states = ("draped(object, over)",)
    object: ObjectReference = Field(description="The cloth.")
    over: ObjectReference = Field(description="The object with the rail.")
    share: Ratio = Field(
        _SHARE, gt=0, lt=0.5, description="Smallest fraction of the cloth on each side, below the rail's axis."
    )
    lying: Ratio = Field(_LYING, ge=0, lt=1, description="Largest fraction of the cloth that touches anything else.")

    def failure(self, world: World) -> Outcome | None:
        """Return the reason if the rail does not carry the cloth, or if too little of it hangs on one side."""
        if why := self._why(world):
            return Outcome(success=False, reason=Reason.NOT_HANGING, detail=f"{self.object} {why}")
        return None

    def _why(self, world: World) -> str:
        touched = [contact.other for contact in find_contacts(world, self.object)]
        if self.over not in touched:
            return f"does not touch {self.over}"
        others = [name for name in touched if name != self.over]
        count = len(world.points(self.object))
        if len(others) > self.lying * count:
            return f"touches {', '.join(sorted(set(others)))} at {len(others)} of {count} points"
        bar = world.pose(self.over) @ find_frame(world, self.over, "bar")
        offsets = world.points(self.object) - bar[:3, 3]
        sides = (offsets @ np.cross((0.0, 0.0, 1.0), bar[:3, 2]))[offsets[:, 2] < 0.0]
        least = min(int((sides > 0.0).sum()), int((sides < 0.0).sum())) / count
        return "" if least >= self.share else f"has {least:.0%} of its points below the rail's axis on one side"
