"""Not moved: objects are where they were at the start."""

from __future__ import annotations

from pydantic import Field

from nimbus.datagen.episode.trajectory import Outcome, Reason
from nimbus.datagen.execute.workcell import Workcell
from nimbus.datagen.files.quantities import Metres, Radians
from nimbus.datagen.registry import register
from nimbus.datagen.success.moved_by import moved
from nimbus.datagen.tasks.statements import ObjectsReference, Predicate, each


@register("predicate", "not_moved")
class NotMoved(Predicate):
    """The objects are within 2 cm and 0.2 rad of where they were at the start."""

    main = "object"
    object: ObjectsReference = Field(description="What must stay; a group means each of its objects.")
    tolerance: Metres = Field(0.02, gt=0, description="How far it may have moved.")
    turn: Radians = Field(0.2, gt=0, description="How far it may have turned or tipped.")

    def failure(self, world: Workcell) -> Outcome | None:
        """The first object that moved."""
        for name in each(self.object):
            way, turn = moved(world, name)
            distance = float((way @ way) ** 0.5)
            if distance > self.tolerance or turn > self.turn:
                detail = f"{name} moved {distance * 100:.1f} cm and turned {turn:.2f} rad"
                return Outcome(success=False, reason=Reason.KNOCKED_OVER, detail=detail)
        return None
