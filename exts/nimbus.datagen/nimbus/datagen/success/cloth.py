"""Conditions on cloth."""

from __future__ import annotations

import numpy as np

from nimbus.datagen.plugin import Field, Metres, ObjectReference, Outcome, Predicate, Reason, World, register

_HEIGHT = 0.06
"""Largest height of a folded cloth above the surface under it [m]; a heap is higher."""


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
