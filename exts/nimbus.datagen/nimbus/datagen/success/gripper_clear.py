"""Gripper clear: the hand is open and touches nothing."""

from __future__ import annotations

from nimbus.datagen.episode.trajectory import Outcome, Reason
from nimbus.datagen.execute.workcell import Workcell
from nimbus.datagen.registry import register
from nimbus.datagen.tasks.statements import Predicate


@register("predicate", "gripper_clear")
class GripperClear(Predicate):
    """The gripper is open, holds nothing and touches nothing."""

    def failure(self, world: Workcell) -> Outcome | None:
        """Not open, or something sticks to it."""
        if world.finger_gap() > 0.005:
            return Outcome(success=False, reason=Reason.GRIPPER_NOT_CLEAR, detail="the fingers are not open")
        for name in sorted(world.meter.touched_by_gripper()):
            return Outcome(success=False, reason=Reason.GRIPPER_NOT_CLEAR, detail=f"the hand touches {name}")
        return None
