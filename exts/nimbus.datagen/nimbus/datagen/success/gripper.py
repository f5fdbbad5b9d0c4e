"""Conditions on the grippers and the objects in them."""

from __future__ import annotations

from nimbus.datagen.execute.toolkit import find_others, is_gripped
from nimbus.datagen.plugin import Field, ObjectReference, Outcome, Predicate, Reason, World, register


@register("predicate", "gripper_clear")
class GripperClear(Predicate):
    """The gripper is open, holds nothing and touches nothing."""

    states = ("empty_hand",)

    def failure(self, world: World) -> Outcome | None:
        """Return the reason if the gripper is not open, or touches something."""
        if world.finger_gap() > 0.005:
            return Outcome(success=False, reason=Reason.GRIPPER_NOT_CLEAR, detail="the fingers are not open")
        for name in sorted(world.touched_by_gripper()):
            return Outcome(success=False, reason=Reason.GRIPPER_NOT_CLEAR, detail=f"the hand touches {name}")
        return None


@register("predicate", "held")
class Held(Predicate):
    """The object touches both fingers of a gripper, and nothing but grippers."""

    main = "object"
    states = ("held(object)",)
    object: ObjectReference = Field(description="The object that must be held.")
    arm: str | None = Field(None, description="Name of the arm; by default any arm.")

    def failure(self, world: World) -> Outcome | None:
        """Return the reason if no gripper holds the object, or it also touches something else."""
        if not is_gripped(world, self.object, self.arm):
            return Outcome(success=False, reason=Reason.NOT_HELD, detail=f"{self.object} is in no hand")
        if others := find_others(world, self.object):
            detail = f"{self.object} touches {', '.join(others)}"
            return Outcome(success=False, reason=Reason.NOT_HELD, detail=detail)
        return None
