"""Held: an object is in a gripper."""

from __future__ import annotations

from pydantic import Field

from nimbus.datagen.episode.trajectory import Outcome, Reason
from nimbus.datagen.execute.contact_queries import is_touching
from nimbus.datagen.execute.workcell import Workcell
from nimbus.datagen.registry import register
from nimbus.datagen.tasks.statements import ObjectReference, Predicate


@register("predicate", "held")
class Held(Predicate):
    """The object touches both fingers of a gripper, and nothing but grippers."""

    main = "object"
    object: ObjectReference = Field(description="What must be held.")
    arm: str | None = Field(None, description="Name of the arm; any when not given.")

    def failure(self, world: Workcell) -> Outcome | None:
        """In no hand, or lying on something as well."""
        arms = [arm for name, arm in world.arms.items() if self.arm in (None, name)]
        if not any(arm.meter.touching(self.object, arm.robot.gripper.fingers) for arm in arms):
            return Outcome(success=False, reason=Reason.NOT_HELD, detail=f"{self.object} is in no hand")
        links = {link for arm in world.arms.values() for link in arm.robot.gripper.links}
        if others := sorted({touch.other for touch in is_touching(world, self.object)} - links):
            detail = f"{self.object} touches {', '.join(others)}"
            return Outcome(success=False, reason=Reason.NOT_HELD, detail=detail)
        return None
