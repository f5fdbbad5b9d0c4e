"""Nothing on the floor: every object is still up on something."""

from __future__ import annotations

from nimbus.datagen.episode.trajectory import Outcome, Reason
from nimbus.datagen.execute.workcell import Workcell
from nimbus.datagen.registry import register
from nimbus.datagen.tasks.statements import Predicate


@register("predicate", "nothing_on_floor")
class NothingOnFloor(Predicate):
    """No object fell off the table."""

    def failure(self, world: Workcell) -> Outcome | None:
        """The first object that lies deeper than it did."""
        for name in world.objects:
            if world.has_fallen(name):
                return Outcome(success=False, reason=Reason.ON_FLOOR, detail=f"{name} fell")
        return None
